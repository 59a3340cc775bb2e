import { expect, test } from 'vitest';
import { leased } from '../../../lambdas/runtime/consume/handler.ts';
import { eventIdShard, outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import { deadKey } from '../../../lambdas/runtime/store/keys.ts';
import { SCHEMA } from '../../../lambdas/runtime/store/row-schema.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { ThingHappened } from '../../support/runtime-rig.ts';
import { operatingMailroom } from './support/operating-mailroom.ts';
import { type MemoryRun, runInMemory } from './support/run-in-memory.ts';

const APPLY = ['--apply', '--reason', 'a test', '--json'];

/** A Mailroom with three dead letters, of which the handler can process the events by now. */
async function threeLetters() {
  let isFixed = false;
  const mailroom = operatingMailroom([
    leased(ThingHappened, async () => {
      if (!isFixed) throw new Error('not yet');
    }),
  ]);
  await mailroom.outbox.commit({ events: [1, 2, 3].map((n) => mailroom.happened(n)) });
  await mailroom.publish();
  await mailroom.drain();
  isFixed = true;
  const ids = mailroom.queue.deadLetters().map(({ messageId }) => messageId);
  /** Makes a call of the queue fail for one message, as often as it is made. */
  const failing = (call: 'send' | 'remove', nth: number) => {
    const body = mailroom.queue.deadLetters()[nth]?.body;
    const ordinary = mailroom.queues[call] as (url: string, message: never) => Promise<never>;
    const failed = async (url: string, message: { readonly body: string } | string) => {
      if ((typeof message === 'string' ? message : message.body) === body) throw throttled();
      return ordinary(url, message as never);
    };
    Object.assign(mailroom.queues, { [call]: failed });
  };
  return { ...mailroom, ids, failing };
}

function throttled(): Error {
  return Object.assign(new Error('Rate exceeded'), { name: 'ThrottlingException' });
}

/** Three DEAD events, and the pointer of each. */
async function threeDead() {
  const mailroom = operatingMailroom([leased(ThingHappened, async () => {})]);
  const { memory, clock } = mailroom;
  const events = await mailroom.outbox.commit({ events: [1, 2, 3].map((n) => mailroom.happened(n)) });
  const ids = events.map(({ eventId }) => eventId);
  const cause = { deadAt: clock.now(), lastError: 'refused', fingerprint: 'relay refused' };
  for (const eventId of ids) {
    const row = memory.item(outboxKeyOf(eventId));
    const pointer = { ...deadKey(eventIdShard(eventId), eventId), schema: SCHEMA, type: row?.type };
    await memory.write({ Put: { Item: { ...row, ...cause, ...outboxKeyOf(eventId), status: 'DEAD' } } });
    await memory.write({ Put: { Item: { ...pointer, ...cause } } });
  }
  const pointerOf = (eventId: string) => memory.item(deadKey(eventIdShard(eventId), eventId));
  return { ...mailroom, ids, pointerOf };
}

function resultsOf({ out }: MemoryRun): readonly { id: string; outcome: string; message: unknown }[] {
  return JSON.parse(out).deadLetters;
}

test('a discard that fails for one dead letter discards the others, and reports each', async () => {
  const { ids, failing, ...mailroom } = await threeLetters();
  failing('remove', 1);
  const run = runInMemory(mailroom, ['dlq', 'discard', 'consumer:worker', '--all', ...APPLY]);
  const made = await mailroom.until(run);
  expect(made.code).toBe(1);
  expect(resultsOf(made).map(({ id, outcome }) => [id, outcome])).toEqual([
    [ids[0], 'discarded'],
    [ids[1], 'failed'],
    [ids[2], 'discarded'],
  ]);
  expect(resultsOf(made)[1]?.message).toBe('ThrottlingException: Rate exceeded');
});

test('a discard that fails for every dead letter fails with the first error', async () => {
  const { failing, ...mailroom } = await threeLetters();
  for (const nth of [0, 1, 2]) failing('remove', nth);
  const run = runInMemory(mailroom, ['dlq', 'discard', 'consumer:worker', '--all', ...APPLY]);
  const made = await mailroom.until(run);
  expect(made.code).not.toBe(0);
  expect(JSON.parse(made.err)).toMatchObject({ error: { code: 'ThrottlingException' } });
});

test('a redrive whose second send fails redrives the others, and reports each', async () => {
  const { ids, failing, ...mailroom } = await threeLetters();
  failing('send', 1);
  const run = runInMemory(mailroom, ['dlq', 'redrive', 'consumer:worker', ...APPLY]);
  const made = await mailroom.until(run);
  expect(made.code).toBe(1);
  expect(resultsOf(made).map(({ id, outcome }) => [id, outcome])).toEqual([
    [ids[0], 'processed'],
    [ids[1], 'failed'],
    [ids[2], 'processed'],
  ]);
  expect(resultsOf(made)[1]).toMatchObject({ code: 'ThrottlingException', message: 'Rate exceeded' });
  expect(JSON.parse(made.out)).toMatchObject({ stopped: true, processed: 2 });
});

test('the text of a redrive of which one send fails names the dead letter and the error', async () => {
  const { failing, ...mailroom } = await threeLetters();
  failing('send', 1);
  const argv = ['dlq', 'redrive', 'consumer:worker', '--apply', '--reason', 'a test'];
  const { out } = await mailroom.until(runInMemory(mailroom, argv));
  expect(unwrapped(out)).toMatch(
    /2 of 3 processed, 1 not redriven\. .* The redrive of \S+ failed: ThrottlingException: Rate exceeded Repeat/,
  );
});

test('a DEAD event whose row was deleted by hand does not keep others from being discarded, and is listed no longer', async () => {
  const { ids, pointerOf, ...mailroom } = await threeDead();
  await mailroom.memory.write({ Delete: { Key: { ...outboxKeyOf(ids[1] ?? '') } } });
  const made = await mailroom.until(runInMemory(mailroom, ['dlq', 'discard', 'dead', '--all', ...APPLY]));
  expect(made.code).toBe(0);
  expect(new Map(resultsOf(made).map(({ id, outcome }) => [id, outcome]))).toEqual(
    new Map([
      [ids[0], 'discarded'],
      [ids[1], 'handled'],
      [ids[2], 'discarded'],
    ]),
  );
  expect(ids.map(pointerOf)).toEqual([undefined, undefined, undefined]);
});

test('a redrive deletes the pointer of an event that is DEAD no longer, as it reports', async () => {
  const { ids, pointerOf, ...mailroom } = await threeDead();
  const key = outboxKeyOf(ids[1] ?? '');
  await mailroom.memory.write({
    Put: { Item: { ...mailroom.memory.item(key), ...key, status: 'DISCARDED' } },
  });
  const argv = ['dlq', 'redrive', 'dead', ids[1] ?? '', ...APPLY];
  const made = await mailroom.until(runInMemory(mailroom, argv));
  expect(made.code).toBe(0);
  expect(resultsOf(made).map(({ outcome }) => outcome)).toEqual(['deleted']);
  expect(ids.map((id) => pointerOf(id) !== undefined)).toEqual([true, false, true]);
});

test('a redrive that cannot delete one handled dead letter deletes and redrives the others, and reports it', async () => {
  const { ids, failing, ...mailroom } = await threeLetters();
  for (const nth of [0, 1]) {
    const body = JSON.parse(mailroom.queue.deadLetters()[nth]?.body ?? '');
    const eventId = String(body.detail.eventId);
    const argv = ['messages', 'resolve', 'worker', eventId, ...APPLY];
    expect((await mailroom.until(runInMemory(mailroom, argv))).code).toBe(0);
  }
  failing('remove', 0);
  const made = await mailroom.until(runInMemory(mailroom, ['dlq', 'redrive', 'consumer:worker', ...APPLY]));
  expect(made.code).toBe(1);
  expect(resultsOf(made).map(({ id, outcome }) => [id, outcome])).toEqual([
    [ids[0], 'failed'],
    [ids[1], 'deleted'],
    [ids[2], 'processed'],
  ]);
  expect(resultsOf(made)[0]).toMatchObject({ code: 'ThrottlingException', message: 'Rate exceeded' });
});
