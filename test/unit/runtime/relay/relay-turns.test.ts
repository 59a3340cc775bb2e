import { describe, expect, test } from 'vitest';
import { CLOCK_SKEW_MS } from '../../../../lambdas/runtime/base/clock.ts';
import type { Bus } from '../../../../lambdas/runtime/bus/event-bus.ts';
import { createRelayStream } from '../../../../lambdas/runtime/relay/relay-stream.ts';
import { createSweepPass } from '../../../../lambdas/runtime/relay/relay-sweep.ts';
import { FRESH_MS } from '../../../../lambdas/runtime/relay/stream-settings.ts';
import { createOutbox } from '../../../../lambdas/runtime/store/dynamo/outbox.ts';
import { outboxKeyOf } from '../../../../lambdas/runtime/store/event-id.ts';
import type { Table } from '../../../../lambdas/runtime/store/table.ts';
import type { MemoryBusOptions } from '../../../../testing/index.ts';
import { consumerConfig, relayConfig, rig, runThrough } from '../../../support/runtime-rig.ts';

const DENIED = { code: 'AccessDeniedException', message: 'no' };
const THROTTLED = { code: 'ThrottlingException', message: 'slow down' };
const INVALID = Object.assign(new Error('1 validation error detected'), { name: 'ValidationException' });

interface Setting {
  /** How many events wait in the outbox. */
  readonly events: number;
  readonly bus?: MemoryBusOptions;
  readonly bornLeaseMs?: number;
  /** How long each call of the bus takes, from its first, milliseconds; the last goes for all others. */
  readonly callsMs?: readonly number[];
}

/** A relay with one call at a time, so that all others wait for their turn. */
async function waitingRelay({ events, callsMs = [0], bornLeaseMs = 30_000, ...options }: Setting) {
  const parts = rig(options);
  const { clock, memory, telemetry } = parts;
  const outbox = createOutbox({
    config: { ...consumerConfig, shards: 1, bornLeaseMs },
    table: memory,
    clock,
  });
  for (let n = 0; n < events; n += 50) {
    const some = Array.from({ length: Math.min(50, events - n) }, (_, i) => parts.happened(n + i));
    await outbox.commit({ events: some });
  }
  const writtenAt = clock.now();
  const born = new Map(parts.rows().map(({ SK, leaseUntil }) => [SK, leaseUntil]));
  const wrong: string[] = [];
  const calledAt: number[] = [];
  let leaseWrites = 0;
  const put: Bus['put'] = async (entries, timeoutMs) => {
    for (const { detail } of entries) {
      const key = outboxKeyOf((JSON.parse(detail) as { eventId: string }).eventId);
      const lease = Number(memory.item(key)?.leaseUntil);
      const age = clock.now() - writtenAt;
      if (lease === born.get(key.SK) && age >= FRESH_MS) wrong.push(`not claimed at ${age} ms`);
      const left = lease - clock.now();
      if (left <= timeoutMs + CLOCK_SKEW_MS) wrong.push(`${left} ms before its lease ends`);
    }
    const callMs = callsMs[Math.min(calledAt.length, callsMs.length - 1)] ?? 0;
    calledAt.push(clock.now());
    await clock.sleep(callMs);
    return parts.bus.put(entries, timeoutMs);
  };
  const counted = (updateEach = memory.updateEach): Table => ({
    ...memory,
    updateEach: (updates) => {
      if (updates.some(({ set }) => !('status' in set))) leaseWrites += 1;
      return updateEach(updates);
    },
  });
  const deps = { config: { ...relayConfig, shards: 1 }, bus: { put }, clock, telemetry, concurrency: 1 };
  return {
    ...parts,
    born,
    /** What a publish did that it may not do. */
    wrong,
    calledAt,
    /** How many calls of the table changed leases: claims, and what was let go of. */
    leaseWrites: () => leaseWrites,
    stream: (updateEach?: Table['updateEach']) =>
      runThrough(clock, createRelayStream({ ...deps, table: counted(updateEach) })(parts.streamEvent())),
    sweep: (endsBy: number) => runThrough(clock, createSweepPass({ ...deps, table: counted() })(endsBy)),
  };
}

const pending = ({ rows }: { rows: () => { status: string; SK: string; leaseUntil: number }[] }) =>
  rows().filter(({ status }) => status === 'PENDING');

describe('right before each call of the bus, the relay checks that the row may still be published:', () => {
  test.each<[string, Setting]>([
    ['after it waited for other calls', { events: 40, callsMs: [3_000] }],
    [
      'after the pause before another try',
      {
        events: 1,
        callsMs: [4_950, 0],
        bus: { failEntry: (_, { number }) => (number === 1 ? THROTTLED : undefined) },
      },
    ],
    [
      'when a call is made again one by one',
      {
        events: 6,
        callsMs: [1_500],
        bus: { failCall: ({ entries }) => (entries.length > 1 ? { error: INVALID } : undefined) },
      },
    ],
    ['when its lease is a short one', { events: 40, callsMs: [1_000], bornLeaseMs: 9_500 }],
  ])('%s', async (_when, setting) => {
    const relay = await waitingRelay(setting);
    await expect(relay.stream()).resolves.toEqual({ batchItemFailures: [] });
    expect(relay.wrong).toEqual([]);
    expect(relay.publishedIds()).toHaveLength(setting.events);
    expect(pending(relay)).toEqual([]);
  });

  test.each([
    ['its claim', 300_000, 4_000],
    ['the invocation', 25_000, 4_000],
    ['the mark in the invocation', 25_000, 3_600],
  ])('in the sweep, which may end with %s', async (_what, forMs, callMs) => {
    const relay = await waitingRelay({ events: 100, callsMs: [callMs] });
    await relay.clock.advance(150_000);
    const endsBy = relay.clock.now() + forMs;
    await relay.sweep(endsBy);
    expect(relay.wrong).toEqual([]);
    expect(relay.calledAt.length).toBeGreaterThan(4);
    expect(relay.calledAt.filter((at) => at + relayConfig.publishTimeoutMs + 3_000 > endsBy)).toEqual([]);
    expect(new Set(relay.publishedIds()).size).toBe(10 * relay.calledAt.length);
    // Rows that it could not publish are released at once.
    expect(pending(relay).filter(({ leaseUntil }) => leaseUntil > relay.clock.now())).toEqual([]);
  });
});

test('a sweep claims no rows that it has no time to publish', async () => {
  const relay = await waitingRelay({ events: 250, callsMs: [4_000] });
  await relay.clock.advance(150_000);
  await relay.sweep(relay.clock.now() + 25_000);
  expect(relay.publishedIds()).toHaveLength(50);
  expect(relay.leaseWrites()).toBe(6); // 100 rows are claimed, 50 of them released
});

test('late records of a batch have the time of one claim, however many they are; the others are returned', async () => {
  const relay = await waitingRelay({ events: 550, callsMs: [1_000], bornLeaseMs: 120_000 });
  await relay.clock.advance(FRESH_MS);
  const startedAt = relay.clock.now();
  const { batchItemFailures } = await relay.stream();
  expect(relay.clock.now() - startedAt).toBeLessThanOrEqual(relayConfig.claimLeaseMs + 8_000);
  expect(relay.publishedIds()).toHaveLength(230);
  expect(batchItemFailures).toHaveLength(320);
  expect(relay.leaseWrites()).toBeLessThanOrEqual(24); // of the two groups whose turn does not come, none
  // As their images have them, for when they come again.
  expect(pending(relay).every(({ SK, leaseUntil }) => leaseUntil === relay.born.get(SK))).toBe(true);
  expect(pending(relay)).toHaveLength(320);
});

test.each([
  ['fresh', 0],
  ['late', FRESH_MS],
])(
  'a bus that fails is called for no more %s records than it takes to see that; all are handed back',
  async (_what, ageMs) => {
    const relay = await waitingRelay({ events: 350, bus: { failEntry: () => DENIED } });
    await relay.clock.advance(ageMs);
    const { batchItemFailures } = await relay.stream();
    expect(relay.bus.calls()).toHaveLength(3);
    expect(relay.leaseWrites()).toBeLessThanOrEqual(16); // two groups are claimed and let go of
    expect(batchItemFailures).toHaveLength(350);
    expect(pending(relay).every(({ SK, leaseUntil }) => leaseUntil === relay.born.get(SK))).toBe(true);
  },
);

test('published events are marked while another call of the bus hangs', async () => {
  const left: number[] = [];
  const failCall = () => {
    left.push(pending(relay).length);
    return undefined;
  };
  const relay = await waitingRelay({ events: 40, callsMs: [0, 0, 0, 4_000], bus: { failCall } });
  await relay.stream();
  expect(left.at(-1)).toBe(15);
  expect(pending(relay)).toEqual([]);
});

test('a claim that waits for its turn has its whole lease', async () => {
  const relay = await waitingRelay({ events: 100 });
  const { clock, memory } = relay;
  await clock.advance(FRESH_MS);
  const claimedAt: number[] = [];
  const updateEach: Table['updateEach'] = async (updates) => {
    const { status, leaseUntil } = updates[0]?.set ?? {};
    if (status === undefined) {
      claimedAt.push(clock.now());
      expect(leaseUntil).toBe(clock.now() + relayConfig.claimLeaseMs);
      await clock.sleep(1_000);
    }
    return memory.updateEach(updates);
  };
  await relay.stream(updateEach);
  expect(new Set(claimedAt).size).toBe(4);
  expect(relay.publishedIds()).toHaveLength(100);
});

test('a late record whose claim has an unknown outcome is returned', async () => {
  const relay = await waitingRelay({ events: 1 });
  await relay.clock.advance(FRESH_MS);
  const updateEach: Table['updateEach'] = async () => {
    throw new Error('connect ETIMEDOUT');
  };
  expect((await relay.stream(updateEach)).batchItemFailures).toHaveLength(1);
  expect(relay.wrong).toEqual([]);
  await expect(relay.stream()).resolves.toEqual({ batchItemFailures: [] });
  expect(relay.publishedIds()).toHaveLength(1);
});
