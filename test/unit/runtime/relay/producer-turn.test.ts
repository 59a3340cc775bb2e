import { expect, test } from 'vitest';
import { AT_ONCE_TIMEOUT_MAX_MS } from '../../../../lambdas/runtime/base/config.ts';
import { createOutbox } from '../../../../lambdas/runtime/store/dynamo/outbox.ts';
import { createAtOncePublisher } from '../../../../lambdas/runtime/store/dynamo/publish-at-once.ts';
import { memoryBus } from '../../../../testing/index.ts';
import { consumerConfig, rig } from '../../../support/runtime-rig.ts';
import { stream } from './relay-stream-rig.ts';

const TURN_MS = 1_000;
const MARGIN_MS = 2_000;

/** The stream relay beside a producer that publishes at once. */
function set(options: { readonly producerFails?: boolean; readonly aheadMs?: number } = {}) {
  const { producerFails = false, aheadMs = 0 } = options;
  const parts = rig();
  const { clock, memory } = parts;
  const producersBus = producerFails
    ? memoryBus({ failCall: () => ({ error: new Error('down') }) })
    : parts.bus;
  const config = { busName: 'bus', timeoutMs: TURN_MS, publishedRetentionDays: 7 };
  const outbox = createOutbox({
    config: consumerConfig,
    table: memory,
    clock: { ...clock, now: () => clock.now() + aheadMs },
    publishAtOnce: createAtOncePublisher({ config, bus: producersBus }),
  });
  const calls: string[] = [];
  const table = {
    ...memory,
    get: async (...args: Parameters<typeof memory.get>) => {
      calls.push(args[1]?.consistent ? 'consistent get' : 'get');
      return memory.get(...args);
    },
    updateEach: async (updates: Parameters<typeof memory.updateEach>[0]) => {
      calls.push(...updates.map(({ set: { status } }) => (status === undefined ? 'claim' : 'mark')));
      return memory.updateEach(updates);
    },
  };
  return { ...parts, table, outbox, calls };
}

test('a row that its producer has published costs one eventually consistent read and no write', async () => {
  const parts = set();
  await parts.outbox.commit({ events: [parts.happened(1)] });
  await expect(stream(parts)()).resolves.toEqual({ batchItemFailures: [] });
  expect(parts.publishedIds()).toHaveLength(1);
  expect(parts.calls).toEqual(['get']);
  expect(parts.rows()).toMatchObject([{ publishedBy: 'producer' }]);
});

test('a row that its producer could not publish is claimed and published after its turn', async () => {
  const parts = set({ producerFails: true });
  const committedAt = parts.clock.now();
  await parts.outbox.commit({ events: [parts.happened(1)] });
  await expect(stream(parts)()).resolves.toEqual({ batchItemFailures: [] });
  expect(parts.publishedIds()).toHaveLength(1);
  // Looks after 0, 50, 150, 350, 750 and 1,550 ms, and a millisecond after the end of the turn.
  expect(parts.calls).toEqual([...Array(7).fill('get'), 'claim', 'mark']);
  const [row] = parts.rows();
  expect(row).toMatchObject({ status: 'PUBLISHED', publishedBy: 'stream', attempts: 0 });
  expect(row?.publishedAt).toBeGreaterThan(committedAt + TURN_MS + MARGIN_MS);
  expect(row?.publishedAt).toBeLessThan(committedAt + TURN_MS + MARGIN_MS + 500);
});

test('rows of several producers are published after the last of their turns, and each missed turn is counted', async () => {
  const parts = set({ producerFails: true });
  const { clock, happened } = parts;
  await parts.outbox.commit({ events: [happened(1)] });
  await clock.advance(1_500); // so that the relay looks between the ends of the two turns
  await parts.outbox.commit({ events: [happened(2)] });
  const turnEndsAt = clock.now() + TURN_MS + MARGIN_MS;
  await expect(stream(parts)()).resolves.toEqual({ batchItemFailures: [] });
  expect(parts.bus.published()).toHaveLength(2);
  expect(parts.rows().map(({ publishedBy }) => publishedBy)).toEqual(['stream', 'stream']);
  for (const { publishedAt } of parts.bus.published()) expect(publishedAt).toBeGreaterThan(turnEndsAt);
  expect(parts.telemetry.counted('BusFailures')).toBe(2);
});

test('a producer that is still publishing is waited for, and nothing is published twice', async () => {
  const parts = set();
  const { clock, bus, calls } = parts;
  const put = bus.put.bind(bus);
  bus.put = async (...args) => {
    await clock.sleep(300);
    return put(...args);
  };
  const committing = parts.outbox.commit({ events: [parts.happened(1)] });
  await clock.advance(0);
  expect(parts.rows()).toMatchObject([{ status: 'PENDING' }]);
  const startedAt = clock.now();
  await stream(parts)();
  expect(clock.now() - startedAt).toBeLessThan(450);
  await committing;
  expect(parts.publishedIds()).toHaveLength(1);
  expect(calls).not.toContain('claim');
  expect(parts.rows()).toMatchObject([{ publishedBy: 'producer' }]);
});

test('other events of the batch are published before the wait', async () => {
  const parts = set({ producerFails: true });
  const { clock, happened } = parts;
  await parts.outbox.commit({ events: [happened(1)] });
  const plain = createOutbox({ config: consumerConfig, table: parts.memory, clock });
  const [event] = await plain.commit({ events: [happened(2)] });
  const startedAt = clock.now();
  await stream(parts)();
  const [first] = parts.bus.published();
  expect(JSON.parse(first?.detail ?? '')).toEqual(event);
  expect(first?.publishedAt).toBe(startedAt);
});

test('a record that comes long after its producer’s turn is claimed without a wait', async () => {
  const parts = set({ producerFails: true });
  await parts.outbox.commit({ events: [parts.happened(1)] });
  await parts.clock.advance(20_000);
  await stream(parts)();
  expect(parts.calls).toEqual(['get', 'claim', 'mark']);
});

test('a row that cannot be read counts as unpublished', async () => {
  const parts = set({ producerFails: true });
  await parts.outbox.commit({ events: [parts.happened(1)] });
  const table = { ...parts.table, get: () => Promise.reject(new Error('throttled')) };
  await stream({ ...parts, table })();
  expect(parts.publishedIds()).toHaveLength(1);
});

test('a row that the read does not show yet counts as unpublished, and the claim decides', async () => {
  const parts = set();
  await parts.outbox.commit({ events: [parts.happened(1)] });
  const table = { ...parts.table, get: async () => undefined };
  await expect(stream({ ...parts, table })()).resolves.toEqual({ batchItemFailures: [] });
  expect(parts.publishedIds()).toHaveLength(1);
  expect(parts.calls).toEqual(['claim']);
});

test('a producer whose clock is far ahead holds up the stream for no longer than the longest turn', async () => {
  const parts = set({ producerFails: true, aheadMs: 3_600_000 });
  const startedAt = parts.clock.now();
  await parts.outbox.commit({ events: [parts.happened(1)] });
  await stream(parts)();
  expect(parts.publishedIds()).toHaveLength(1);
  expect(parts.clock.now() - startedAt).toBeLessThan(8_500);
});

test('a producer whose clock is far ahead has its longest turn, also where its record says an earlier time of the same second', async () => {
  const parts = set({ producerFails: true, aheadMs: 3_600_000 });
  await parts.clock.advance(900);
  const committedAt = parts.clock.now();
  await parts.outbox.commit({ events: [parts.happened(1)] });
  const [record] = parts.streamEvent().Records;
  expect(record?.dynamodb?.ApproximateCreationDateTime).toBe((committedAt - 900) / 1_000);
  await stream(parts)();
  const [published] = parts.bus.published();
  expect(published?.publishedAt).toBeGreaterThan(committedAt + AT_ONCE_TIMEOUT_MAX_MS + MARGIN_MS);
});

test('a record without a time counts as old: its row is published', async () => {
  const parts = set({ producerFails: true });
  await parts.outbox.commit({ events: [parts.happened(1)] });
  const Records = parts.streamEvent().Records.map((record) => ({
    ...record,
    dynamodb: { ...record.dynamodb, ApproximateCreationDateTime: undefined },
  }));
  await stream(parts)({ Records } as ReturnType<typeof parts.streamEvent>);
  expect(parts.publishedIds()).toHaveLength(1);
});

test('a hostile row, whose turn never ends, holds up no record that is older than the longest turn', async () => {
  const parts = set({ producerFails: true, aheadMs: 3_600_000 });
  await parts.outbox.commit({ events: [parts.happened(1)] });
  await parts.clock.advance(10_000);
  const startedAt = parts.clock.now();
  await stream(parts)();
  expect(parts.publishedIds()).toHaveLength(1);
  expect(parts.clock.now() - startedAt).toBeLessThan(100);
});

test('late records of other events do not wait for a producer', async () => {
  const parts = set({ producerFails: true });
  const { clock, happened } = parts;
  const plain = createOutbox({ config: consumerConfig, table: parts.memory, clock });
  const [event] = await plain.commit({ events: [happened(2)] });
  await clock.advance(6_000);
  await parts.outbox.commit({ events: [happened(1)] });
  const startedAt = clock.now();
  await stream(parts)();
  const [first] = parts.bus.published();
  expect(JSON.parse(first?.detail ?? '')).toEqual(event);
  expect(first?.publishedAt).toBe(startedAt);
  expect(parts.publishedIds()).toHaveLength(2);
});

test('reads that hang end with the turn, and are reported', async () => {
  const parts = set({ producerFails: true });
  await parts.outbox.commit({ events: [parts.happened(1)] });
  const startedAt = parts.clock.now();
  const table = { ...parts.table, get: () => new Promise<undefined>(() => {}) };
  await stream({ ...parts, table })();
  expect(parts.publishedIds()).toHaveLength(1);
  expect(parts.clock.now() - startedAt).toBeLessThan(TURN_MS + MARGIN_MS + 500);
});

test('reads of a late record that hang end after a second', async () => {
  const parts = set({ producerFails: true });
  await parts.outbox.commit({ events: [parts.happened(1)] });
  await parts.clock.advance(20_000);
  const startedAt = parts.clock.now();
  const table = { ...parts.table, get: () => new Promise<undefined>(() => {}) };
  await stream({ ...parts, table })();
  expect(parts.publishedIds()).toHaveLength(1);
  expect(parts.clock.now() - startedAt).toBeLessThan(1_100);
});

test('an event that its producer did not publish counts as a failure of the bus, and a failed read is logged', async () => {
  const parts = set({ producerFails: true });
  await parts.outbox.commit({ events: [parts.happened(1)] });
  const table = { ...parts.table, get: () => Promise.reject(new Error('denied')) };
  await stream({ ...parts, table })();
  expect(parts.telemetry.counted('BusFailures')).toBe(1);
  expect(parts.telemetry.lines().map(({ message }) => message)).toEqual(
    expect.arrayContaining([
      expect.stringContaining('could not be read'),
      expect.stringContaining('did not publish'),
    ]),
  );
});

test('a late record of an event that its producer has published is read, and neither claimed nor counted', async () => {
  const parts = set();
  await parts.outbox.commit({ events: [parts.happened(1)] });
  await parts.clock.advance(20_000);
  const table = {
    ...parts.table,
    get: async (...args: Parameters<typeof parts.table.get>) => {
      await parts.clock.sleep(900);
      return parts.table.get(...args);
    },
  };
  await stream({ ...parts, table })();
  expect(parts.calls).toEqual(['get']);
  expect(parts.telemetry.counted('BusFailures')).toBe(0);
});

test('an event whose read fails although its producer has published it counts as no failure: its claim is refused', async () => {
  const parts = set();
  await parts.outbox.commit({ events: [parts.happened(1)] });
  const table = { ...parts.table, get: () => Promise.reject(new Error('denied')) };
  await stream({ ...parts, table })();
  expect(parts.publishedIds()).toHaveLength(1);
  expect(parts.telemetry.counted('BusFailures')).toBe(0);
});

test('a late event of a producer that leaves publishing to the relay counts as no failure', async () => {
  const parts = set();
  const plain = createOutbox({ config: consumerConfig, table: parts.memory, clock: parts.clock });
  await plain.commit({ events: [parts.happened(1)] });
  await parts.clock.advance(20_000);
  await stream(parts)();
  expect(parts.publishedIds()).toHaveLength(1);
  expect(parts.telemetry.counted('BusFailures')).toBe(0);
  expect(parts.telemetry.lines()).toEqual([]);
});
