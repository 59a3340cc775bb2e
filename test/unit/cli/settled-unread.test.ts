import { describe, expect, test } from 'vitest';
import { z } from 'zod/mini';
import { leased } from '../../../lambdas/runtime/consume/handler.ts';
import { externalEvent } from '../../../lambdas/runtime/events/external-event.ts';
import { discardMessage, resolveMessage } from '../../../lambdas/runtime/operations/message-operations.ts';
import { createConsumer } from '../../../lambdas/runtime/sources/sqs/consumer.ts';
import { unreadableId } from '../../../lambdas/runtime/store/event-id.ts';
import { externalEventId } from '../../../lambdas/runtime/store/external-id.ts';
import { inboxHistoryKey, inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import { lambdaContext } from '../../../testing/index.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { consumerConfig, runThrough } from '../../support/runtime-rig.ts';
import { directory, mailroomInMemory, worker } from './support/mailroom-in-memory.ts';
import { operatingMailroom } from './support/operating-mailroom.ts';
import { APPLY } from './support/rejected-event.ts';
import { runInMemory } from './support/run-in-memory.ts';

const schema = z.object({ key: z.string() });
const wrong = externalEvent({ source: 'stripe', type: 'charge.succeeded', id: 'id', schema });
const right = externalEvent({ ...wrong, id: 'key', schema });
const body = JSON.stringify({ key: 'evt_1' });
const id = unreadableId(body);
const note = { consumer: worker.name, eventId: id, by: 'ada', reason: 'charged by phone' };

/** A message that a wrong path has made unreadable, in the dead-letter queue, and the consumer with the corrected path. */
async function corrected() {
  const ran: string[] = [];
  const next = operatingMailroom([leased(right, async ({ externalId }) => void ran.push(externalId))]);
  const { table, queue, clock, telemetry } = next;
  const earlier = createConsumer({
    ...{ table, queue, clock, telemetry, config: consumerConfig },
    handlers: [leased(wrong, async () => {})],
  });
  /** Rounds of the version with the wrong path. */
  const drainEarlier = async (rounds = 30) => {
    for (let round = 0; round < rounds && queue.messages().length > 0; round += 1)
      await runThrough(clock, queue.deliver(earlier, 10, lambdaContext({ clock })));
  };
  queue.send(body);
  await drainEarlier();
  expect(next.memory.item(inboxKey(worker.name, id))).toMatchObject({ status: 'REJECTED' });
  expect(queue.deadLetters()).toHaveLength(1);
  const mailroom = { ...next, directory: { ...directory, consumers: [{ ...worker, events: [right] }] } };
  const run = async (...argv: string[]) => {
    const { out, err } = await next.until(runInMemory(mailroom, [...argv, '--json']));
    return JSON.parse(out || err);
  };
  return { ...mailroom, ran, run, drainEarlier };
}

describe.each([
  ['resolved', resolveMessage],
  ['discarded', discardMessage],
] as const)('a message that was %s while it could not be read', (_what, settle) => {
  test('does not run once it can be read, by whatever redrive it comes back', async () => {
    const { table, clock, queue, drain, ran, memory } = await corrected();
    const history = memory.item(inboxHistoryKey(worker.name));
    await settle({ table, clock }, note);
    expect(memory.item(inboxHistoryKey(worker.name))).toMatchObject({ ...history });
    queue.send(body); // the AWS console gives it another message id
    await drain();
    expect(ran).toEqual([]);
    expect(queue.deadLetters()).toHaveLength(1); // the first one, which no redrive has moved
    expect(memory.item(inboxHistoryKey(worker.name))?.unreadableSettled).toEqual(new Set([id.slice(11, 14)]));
  });

  test('is deleted as handled by dlq redrive', async () => {
    const { table, clock, run, drain, ran, queues } = await corrected();
    await settle({ table, clock }, note);
    const plan = await run('dlq', 'redrive', 'consumer:worker');
    expect(plan.deadLetters).toMatchObject([{ verdict: 'handled' }]);
    const made = await run('dlq', 'redrive', 'consumer:worker', ...APPLY);
    expect(made.deadLetters).toMatchObject([{ outcome: 'deleted' }]);
    await drain();
    expect(ran).toEqual([]);
    expect(await queues.receive(worker.deadLetterQueue, { limit: 10 })).toEqual([]);
  });

  test('is absorbed where it is still in the queue', async () => {
    const { table, clock, queue, drainEarlier } = await corrected();
    queue.send(body);
    await drainEarlier(1);
    await settle({ table, clock }, note);
    await drainEarlier();
    expect(queue.deadLetters()).toHaveLength(1);
  });

  test('stays a dead letter where another message has its body and cannot be read either', async () => {
    const { table, clock, queue, drainEarlier } = await corrected();
    await settle({ table, clock }, note);
    queue.send(body);
    await drainEarlier();
    expect(queue.deadLetters()).toHaveLength(2);
  });
});

test('a dead letter that could not be read at first has the cause of its rejection, and is not called unclaimed', async () => {
  const { run } = await corrected();
  const { deadLetterSources } = await run('dlq', 'list', 'consumer:worker');
  expect(deadLetterSources[0].deadLetters).toMatchObject([
    { eventId, fingerprint: expect.stringContaining('BAD_EXTERNAL_ID'), neverClaimed: false },
  ]);
});

test('a message that was not settled runs once it can be read, and so does another one after a decision', async () => {
  const { queue, drain, ran, table, clock } = await corrected();
  await resolveMessage({ table, clock }, { ...note, eventId: unreadableId('another body') });
  queue.send(body);
  queue.send(JSON.stringify({ key: 'evt_2' }));
  await drain();
  expect(ran.toSorted()).toEqual(['evt_1', 'evt_2']);
});

test('a decision about an unreadable message of a consumer that never started leaves a history that it can read', async () => {
  const ran: string[] = [];
  const mailroom = mailroomInMemory([leased(right, async ({ externalId }) => void ran.push(externalId))]);
  await discardMessage(mailroom, note);
  mailroom.queue.send(body);
  mailroom.queue.send(JSON.stringify({ key: 'evt_2' }));
  await mailroom.drain();
  expect(mailroom.queue.messages()).toEqual([]);
  expect(ran).toEqual(['evt_2']);
  expect(mailroom.memory.item(inboxHistoryKey(worker.name))).toMatchObject({
    retentions: [{ days: worker.inboxRetentionDays }],
    unreadableSettled: new Set([id.slice(11, 14)]),
  });
});

/** The consumer with the corrected path has started before the operator decides, so it has not read the mark of the decision. */
async function startedEarlier() {
  const started = await corrected();
  const { queue, drain, ran } = started;
  queue.send(JSON.stringify({ key: 'evt_2' }));
  await drain();
  expect(ran.splice(0)).toEqual(['evt_2']);
  /** Redrives the dead letter as the AWS console does. */
  const redriveInConsole = async () => {
    queue.send(body);
    await drain();
  };
  return { ...started, redriveInConsole };
}

/** The invocation of a function that an operator may not invoke. */
const denied = () => Promise.reject(new Error('AccessDenied'));
/** A directory in which the consumer has the wrong path, as before its deployment has ended. */
const stale = { directory: { ...directory, consumers: [{ ...worker, events: [wrong] }] } };
const eventId = externalEventId(right, ['evt_1']);

describe('a message that the deployed code can read by the time of the decision', () => {
  test.each([
    ['resolved', []],
    ['resolved by force', ['--force', '--effects-checked']],
  ])('is not %s under the id of its body, but under that of its event', async (_what, words) => {
    const { run, memory, ran, redriveInConsole } = await startedEarlier();
    const before = memory.item(inboxHistoryKey(worker.name));
    for (const change of [[], APPLY]) {
      const refused = await run('messages', 'resolve', worker.name, id, ...words, ...change);
      expect(refused).toMatchObject({ error: { code: 'MESSAGE_READABLE' } });
      expect(refused.error.message).toContain(`messages resolve ${worker.name} ${eventId} `);
    }
    expect(memory.item(inboxKey(worker.name, id))).toMatchObject({ status: 'REJECTED' });
    expect(memory.item(inboxHistoryKey(worker.name))).toEqual(before);
    const made = await run('messages', 'resolve', worker.name, eventId, ...APPLY);
    expect(made).toMatchObject({ status: 'resolved' });
    await redriveInConsole();
    expect(ran).toEqual([]);
  });

  test('is discarded under the id of its event, also if the directory has the wrong path', async () => {
    const started = await startedEarlier();
    Object.assign(started, stale);
    const { memory, ran, redriveInConsole, until } = started;
    const argv = ['dlq', 'discard', 'consumer:worker', '--all', ...APPLY, '--json'];
    const { out } = await until(runInMemory(started, argv));
    expect(JSON.parse(out).deadLetters).toMatchObject([{ eventId, outcome: 'discarded' }]);
    expect(memory.item(inboxKey(worker.name, eventId))).toMatchObject({ status: 'DISCARDED' });
    expect(memory.item(inboxKey(worker.name, id))).toMatchObject({ status: 'DISCARDED' });
    await redriveInConsole();
    expect(ran).toEqual([]);
  });

  test('is deleted as handled if its event was processed', async () => {
    const started = await startedEarlier();
    Object.assign(started, stale);
    await started.redriveInConsole();
    expect(started.ran).toEqual(['evt_1']);
    for (const change of [[], APPLY]) {
      const argv = ['dlq', 'discard', 'consumer:worker', '--all', ...change, '--json'];
      const { out } = await started.until(runInMemory(started, argv));
      expect(JSON.parse(out).deadLetters).toMatchObject([{ eventId, outcome: 'handled' }]);
    }
  });
});

describe('a message whose reading by the deployed code is unknown', () => {
  test.each([
    ['its function cannot be asked', { invoke: denied }],
    ['its dead letter is gone', {}],
  ])('is resolved, and the command says so, because %s', async (_why, part) => {
    const started = await startedEarlier();
    Object.assign(started, part);
    if (!('invoke' in part))
      for (const { messageId } of started.queue.deadLetters()) started.remove(messageId);
    for (const change of [[], APPLY]) {
      const argv = ['messages', 'resolve', worker.name, id, ...change];
      const { out } = await started.until(runInMemory(started, argv));
      expect(unwrapped(out)).toContain('It is unknown whether the deployed function of worker can read');
    }
    expect(started.memory.item(inboxKey(worker.name, id))).toMatchObject({ status: 'PROCESSED' });
  });

  test('is discarded, and the plan says so', async () => {
    const started = await startedEarlier();
    Object.assign(started, stale, { invoke: denied });
    for (const change of [[], APPLY]) {
      const argv = ['dlq', 'discard', 'consumer:worker', '--all', ...change];
      const { out } = await started.until(runInMemory(started, argv));
      expect(unwrapped(out)).toContain('It is unknown whether the deployed function of worker can read');
    }
    expect(started.memory.item(inboxKey(worker.name, id))).toMatchObject({ status: 'DISCARDED' });
  });
});

test('a message that the deployed code cannot read is resolved under the id of its body', async () => {
  const started = await corrected();
  const { queue, clock, table, telemetry, memory, until } = started;
  const deployed = createConsumer({
    ...{ table, queue, clock, telemetry, config: consumerConfig },
    handlers: [leased(wrong, async () => {})],
  });
  const invoke = (request: Parameters<typeof deployed>[0]) => deployed(request, lambdaContext({ clock }));
  Object.assign(started, { invoke });
  const { out } = await until(runInMemory(started, ['messages', 'resolve', worker.name, id, ...APPLY]));
  expect(unwrapped(out)).not.toContain('unknown');
  expect(memory.item(inboxKey(worker.name, id))).toMatchObject({ status: 'PROCESSED' });
});
