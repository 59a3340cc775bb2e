import { expect, test } from 'vitest';
import { HOUR_MS } from '../../../../lambdas/runtime/base/units.ts';
import { leased } from '../../../../lambdas/runtime/consume/handler.ts';
import { inboxKey } from '../../../../lambdas/runtime/store/keys.ts';
import { consumerConfig as defaultConfig } from '../../../../testing/index.ts';
import { rig, ThingHappened } from '../../../support/runtime-rig.ts';
import {
  beforeWrite,
  CONSUMER,
  consumer,
  crashable,
  inboxRow,
  oneMessage,
  type Parts,
  send,
  throttled,
  unanswered,
} from './consumer-rig.ts';

/** Many messages, several pollers, and a queue that hands them out in any order, with the constructs' defaults. */
const { maxAttempts } = defaultConfig();

/** The same draws in every run. */
function draws(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296;
    return state / 4_294_967_296;
  };
}

const options = (maxReceiveCount = 105) => ({ maxReceiveCount, draw: draws(5) });
const sendEach = (parts: Parts, count: number) =>
  Array.from({ length: count }, (_, n) => send(parts, { aggregateId: `${n}` }));
const statuses = (parts: Parts, events: readonly ReturnType<typeof send>[]) => [
  ...new Set(events.map((event) => inboxRow(parts, event)?.status)),
];

test('150 messages that exhaust the memory together, but not alone, are processed within 25 receives', async () => {
  const parts = rig(options(25));
  const events = sendEach(parts, 150);
  await crashable(
    parts,
    ({ kill }) => {
      let running = 0;
      return [
        leased(ThingHappened, async () => {
          running += 1;
          await parts.clock.sleep(100);
          if (running > 1) await kill();
          await parts.clock.sleep(900);
          running -= 1;
        }),
      ];
    },
    { maxAttempts: 1 },
  ).poll(5, 4 * HOUR_MS);
  expect(statuses(parts, events)).toEqual(['PROCESSED']);
  expect(parts.queue.deadLetters()).toEqual([]);
});

test('50 healthy messages are processed beside a hundred that always hang', async () => {
  const parts = rig(options());
  for (let n = 0; n < 100; n += 1) send(parts, { aggregateId: 'hangs' });
  const healthy: ReturnType<typeof send>[] = [];
  const start = parts.clock.now();
  const handler = leased(ThingHappened, ({ aggregateId }) =>
    parts.clock.sleep(aggregateId === 'hangs' ? 1_000_000 : 200),
  );
  await crashable(parts, () => [handler], { maxAttempts }).poll(5, 2 * HOUR_MS, () => {
    const minutes = (parts.clock.now() - start) / 60_000;
    if (minutes > 10 && minutes < 60 && healthy.length < 50 && minutes - 10 > healthy.length)
      healthy.push(send(parts, { aggregateId: 'healthy' }));
  });
  expect(healthy).toHaveLength(50);
  expect(statuses(parts, healthy)).toEqual(['PROCESSED']);
});

/** Leaves messages as a deployment that dies at every message does: received twice, and about to be taken over for the second time. */
async function makeSuspects(parts: Parts, sent: readonly ReturnType<typeof send>[]): Promise<void> {
  for (let receive = 1; receive <= 2; receive += 1) {
    while (parts.queue.receive(10).length > 0);
    await parts.clock.advance(60_000);
  }
  const died = { schema: 1, status: 'PROCESSING', fence: 'dead', attempts: 1, unfinished: 1, leaseUntil: 0 };
  for (const { eventId } of sent)
    await parts.memory.write({ Put: { Item: { ...inboxKey(CONSUMER, eventId), ...died } } });
}

test('a healthy message runs within 12 receives in small batches of suspects that were received as often', async () => {
  const parts = rig({ maxReceiveCount: 12 });
  const healthy = send(parts, { aggregateId: 'healthy' });
  await makeSuspects(parts, sendEach(parts, 150));
  await crashable(parts, () => [leased(ThingHappened, async () => {})]).drain(2_000, 2);
  expect(statuses(parts, [healthy])).toEqual(['PROCESSED']);
  expect(parts.queue.deadLetters()).not.toContainEqual(
    expect.objectContaining({ body: expect.stringContaining(healthy.eventId) }),
  );
});

test('suspects wait as in any outage while the table cannot be read', async () => {
  const parts = rig(options());
  const events = sendEach(parts, 2);
  await makeSuspects(parts, events);
  const up = parts.clock.now() + HOUR_MS;
  const get: typeof parts.memory.get = (...args) =>
    parts.clock.now() < up ? throttled() : parts.memory.get(...args);
  await consumer(parts, [leased(ThingHappened, async () => {})], { ...parts.memory, get }).drain(200);
  expect(statuses(parts, events)).toEqual(['PROCESSED']);
  expect(parts.queue.deadLetters()).toEqual([]);
});

const commits = { writes: [{ Put: { Item: { PK: 'W', SK: 'W' } } }] };

test.each([
  ['does not answer transactions', 'transact', 40_000, 0],
  ['is slow with every write', 'write', 8_000, 22_000],
] as const)('a table that %s for 3 hours costs no attempt', async (_what, call, tookMs, workMs) => {
  const one = oneMessage({}, options());
  const up = one.clock.now() + 3 * HOUR_MS;
  const slow = beforeWrite(one.memory, '', async () => {
    if (one.clock.now() >= up) return;
    await one.clock.sleep(tookMs);
    if (call === 'transact') await unanswered();
  });
  const handler = leased(ThingHappened, async (_event, ctx) => {
    await one.clock.sleep(workMs);
    await ctx.commit(commits);
  });
  const memory = { ...one.memory, [call]: slow[call] };
  await crashable({ ...one, memory }, () => [handler], { maxAttempts: 1 }).drain();
  expect(one.row()).toMatchObject({ status: 'PROCESSED' });
  expect(one.telemetry.counted('TableFailures')).toBeGreaterThan(10);
});

test('a table that throttles half of all writes costs no attempt', async () => {
  const one = oneMessage({}, options());
  const draw = draws(7);
  const table = beforeWrite(one.memory, '', () => (draw() < 0.5 ? throttled() : undefined));
  await one.drain((ctx) => ctx.commit(commits), { table, maxAttempts: 1 }, 100);
  expect(one.row()).toMatchObject({ status: 'PROCESSED', attempts: 1 });
});
