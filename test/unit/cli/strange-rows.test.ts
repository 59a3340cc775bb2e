import { describe, expect, test } from 'vitest';
import { deadLetterSource, receiveDeadLetters } from '../../../cli/reports/dead-letters/dead-letters.ts';
import { judgeDeadLetters } from '../../../cli/reports/dead-letters/redrive-plan.ts';
import { messagesOf } from '../../../cli/reports/messages/list-messages.ts';
import { readStatus } from '../../../cli/reports/status/read-status.ts';
import { statusText } from '../../../cli/reports/status/status-text.ts';
import { eventReports, payloadsOf, traceText } from '../../../cli/reports/why/trace-text.ts';
import { outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import { deadKey, failedKey, inboxKey, rejectedKey } from '../../../lambdas/runtime/store/keys.ts';
import type { Item } from '../../../lambdas/runtime/store/table.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { withStored } from '../../support/with-stored.ts';
import { directory, mailroomInMemory, worker } from './support/mailroom-in-memory.ts';
import { wired } from './support/resources-in-memory.ts';
import { commit, fine, type Mailroom, published, why } from './support/why-rig.ts';

const NEWER = 'its "schema" is 2, and this version reads up to 1';

/** A published event, and its inbox row, written by hand. */
async function publishedWith(row: object | undefined) {
  const mailroom = mailroomInMemory([fine]);
  const eventId = await published(mailroom);
  const now = mailroom.clock.now();
  const key = inboxKey(worker.name, eventId);
  if (row !== undefined) await put(mailroom, { ...key, schema: 1, fence: 'f', attempts: 1, ...row });
  return { mailroom, eventId, now, key };
}

async function put({ memory }: Mailroom, Item: Item): Promise<void> {
  await memory.write({ Put: { Item } });
}

const STRANGE = [
  ['no status', { status: undefined }, 'it has no "status"'],
  ['an unknown status', { status: 'PARKED' }, 'its "status" is "PARKED"'],
  ['a newer schema', { status: 'PROCESSED', schema: 2 }, NEWER],
  ['a time that is negative', { status: 'PROCESSED', processedAt: -1.5 }, 'its "processedAt" is not a time'],
  ['a time beyond all dates', { status: 'FAILED', retryAt: 9e15 }, 'its "retryAt" is not a time'],
  [
    'an error that is not text',
    { status: 'FAILED', lastError: { deep: 1 } },
    'its "lastError" is not a string',
  ],
] as const;

describe('why, of an inbox row that cannot be read', () => {
  test.each(STRANGE)('for %s: report it, and show the row', async (_what, row, problem) => {
    const { mailroom, eventId, key } = await publishedWith(row);
    const { verdict, needed, story, trace } = await why(mailroom, eventId);
    expect(verdict).toMatchObject({ state: 'unreadable', eventId, consumer: 'worker' });
    expect(verdict.text).toContain(
      `worker has a row of ThingHappened ${eventId} that cannot be read: ${problem}`,
    );
    expect(verdict.next).toMatch(/^aws dynamodb get-item .*--table-name Mailroom --key '\{/);
    expect(verdict.next).toContain(key.PK);
    expect(needed).toBe(true);
    expect(story).toContain('worker unreadable');
    expect(eventReports(trace, true)[0]?.consumers).toEqual({ worker: 'UNREADABLE' });
    expect(unwrapped(traceText(trace, payloadsOf(trace)))).toContain(problem);
  });
});

describe('why, of a message that was left PROCESSING', () => {
  test('without a lease: it is taken over by the next receive, and late when that should have come', async () => {
    const { mailroom, eventId, now } = await publishedWith({ status: 'PROCESSING' });
    await put(mailroom, { ...inboxKey('worker', eventId), schema: 1, status: 'PROCESSING', claimedAt: now });
    const { verdict, needed } = await why(mailroom, eventId);
    expect(verdict.state).toBe('retrying');
    expect(needed).toBe(false);
    await mailroom.clock.advance(16 * 60_000);
    expect((await why(mailroom, eventId)).verdict.state).toBe('late');
  });

  test('because its time was up: it ran out of time, and how often in a row it was left', async () => {
    const { mailroom, eventId, now } = await publishedWith(undefined);
    const row = { schema: 1, status: 'PROCESSING', fence: 'f', attempts: 2, unfinished: 3, outOfTime: true };
    await put(mailroom, { ...inboxKey('worker', eventId), ...row, leaseUntil: now - 10_000 });
    const { verdict, trace } = await why(mailroom, eventId);
    expect(verdict.text).toContain('attempt 2 of 3');
    expect(eventReports(trace, false)[0]?.consumers).toEqual({ worker: 'PROCESSING' });
    await put(mailroom, { ...inboxKey('worker', eventId), ...row, leaseUntil: now + 10_000 });
    expect((await why(mailroom, eventId)).verdict.state).toBe('processing');

    await put(mailroom, { ...inboxKey('worker', eventId), ...row, leaseUntil: now - 10_000 });
    await put(mailroom, { ...failedKey('worker', eventId), schema: 1, failedAt: now, expiresAt: now });
    const { items } = await messagesOf(withStored(mailroom), worker, { limit: 100 });
    expect(items).toMatchObject([
      {
        status: 'PROCESSING',
        attempt: 2,
        unfinished: 3,
        outOfTime: true,
        lastError: 'ran out of time; 3 claims in a row were left unfinished',
      },
    ]);
  });
});

describe('why, of an outbox row that cannot be read', () => {
  test.each([
    ['a newer schema', { schema: 2 }, NEWER],
    ['an unknown status', { status: 'SCHEDULED' }, 'its "status" is "SCHEDULED"'],
    ['no lease while it is PENDING', { status: 'PENDING', leaseUntil: undefined }, 'it has no "leaseUntil"'],
  ])('for %s: report it, with the state at its consumers', async (_what, change, problem) => {
    const { mailroom, eventId } = await publishedWith({
      status: 'PROCESSED',
      processedAt: Date.UTC(2050, 0),
    });
    await put(mailroom, { ...mailroom.memory.item(outboxKeyOf(eventId)), ...change });
    const { verdict, trace, story } = await why(mailroom, eventId);
    expect(verdict).toMatchObject({ state: 'unreadable', eventId });
    expect(verdict.text).toContain(problem);
    expect(story).toEqual(['outbox unreadable', 'worker processed']);
    expect(eventReports(trace, false)).toMatchObject([
      { status: 'UNREADABLE', consumers: { worker: 'PROCESSED' } },
    ]);
    expect(unwrapped(traceText(trace))).toContain(problem);
  });
});

describe('lists of messages and of dead letters', () => {
  test('show rows, hints and pointers that cannot be read as just that', async () => {
    const { mailroom, eventId } = await publishedWith({ status: 'PARKED' });
    await put(mailroom, { ...failedKey('worker', eventId), schema: 1 });
    await put(mailroom, { ...rejectedKey('worker', 'some'), schema: 2, rejectedAt: 'long ago' });
    const { items } = await messagesOf(withStored(mailroom), worker, { limit: 100 });
    expect(items.map(({ status, at, lastError }) => ({ status, at, lastError }))).toEqual([
      { status: 'UNREADABLE', at: null, lastError: expect.stringContaining('its "status" is "PARKED"') },
      { status: 'UNREADABLE', at: null, lastError: `cannot be read: ${NEWER}` },
    ]);
  });

  test('classify a dead letter whose row cannot be read as unreadable, without calling its consumer', async () => {
    const { mailroom, eventId } = await publishedWith({ status: 'PARKED' });
    const [message] = mailroom.queue.messages();
    mailroom.addDeadLetter(worker.deadLetterQueue, {
      messageId: 'message-1',
      receiptHandle: 'r',
      body: message?.body ?? '',
      sentAt: mailroom.clock.now(),
      attributes: {},
    });
    const deps = { directory, table: mailroom.table, queues: mailroom.queues, clock: mailroom.clock };
    const source = deadLetterSource(directory, 'consumer:worker');
    const { deadLetters } = await receiveDeadLetters(withStored(deps), source, { limit: 10, hideS: 0 });
    const check = () => Promise.resolve([]);
    const judged = await judgeDeadLetters(
      withStored({ ...deps, check, now: mailroom.clock.now() }),
      source,
      deadLetters,
    );
    expect(judged).toMatchObject([
      { eventId, verdict: 'unreadable', message: expect.stringContaining('its "status" is "PARKED"') },
    ]);
  });

  test('show and classify unreadable pointers to DEAD events', async () => {
    const { mailroom, eventId } = await publishedWith(undefined);
    await put(mailroom, { ...deadKey(0, eventId), schema: 1, deadAt: 'long ago' });
    await put(mailroom, {
      ...deadKey(0, 'no event'),
      schema: 1,
      deadAt: 1,
      type: 't',
      lastError: 'e',
      fingerprint: 'f',
    });
    const deps = { directory, table: mailroom.table, queues: mailroom.queues, clock: mailroom.clock };
    const source = deadLetterSource(directory, 'dead');
    const { deadLetters } = await receiveDeadLetters(withStored(deps), source, { limit: 10, hideS: 0 });
    expect(deadLetters.map(({ id, sentAt }) => [id, sentAt])).toEqual(
      expect.arrayContaining([
        [eventId, undefined],
        ['no event', 1],
      ]),
    );
    const check = () => Promise.resolve([]);
    const judged = await judgeDeadLetters(withStored({ ...deps, check, now: 1 }), source, deadLetters);
    expect(judged.map(({ id, verdict }) => [id, verdict]).sort()).toEqual([
      [eventId, 'handled'],
      ['no event', 'unreadable'],
    ]);
  });
});

test('the status requires action if rows cannot be read, and names the place to look', async () => {
  const { mailroom, eventId } = await publishedWith({ status: 'PARKED' });
  await put(mailroom, { ...failedKey('worker', eventId), schema: 1, failedAt: 1, expiresAt: 1 });
  await put(mailroom, { ...rejectedKey('worker', 'some'), schema: 2 });
  const waiting = await commit(mailroom);
  await put(mailroom, { ...mailroom.memory.item(outboxKeyOf(waiting)), leaseUntil: 'soon' });
  const { table, queues, clock } = mailroom;
  const report = await readStatus(
    withStored({
      directory,
      region: 'eu-west-1',
      table,
      queues,
      wiring: wired,
      now: clock.now(),
    }),
  );
  expect(report).toMatchObject({
    outbox: { pending: 1, unreadable: 1, oldestPendingMs: 0 },
    consumers: { worker: { failed: 0, rejected: 0, unreadable: 2 } },
    ok: false,
  });
  const text = statusText(report, {
    commandLine: (command) => `mailroom ${command}`,
    awsLine: (command) => `aws ${command}`,
  });
  expect(text).toContain('mailroom messages list --consumer worker');
});
