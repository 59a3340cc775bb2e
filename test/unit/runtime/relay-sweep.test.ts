import { expect, test } from 'vitest';
import { minuteOf } from '../../../lambdas/runtime/event-id.ts';
import { createOutbox } from '../../../lambdas/runtime/outbox.ts';
import { createRelaySweep } from '../../../lambdas/runtime/relay-sweep.ts';
import { SWEEP_STATE_KEY } from '../../../lambdas/runtime/rows.ts';
import { MINUTE_MS } from '../../../lambdas/runtime/sweep-minutes.ts';
import { lambdaContext } from '../../../lambdas/runtime/testing.ts';
import { bench, consumerConfig, relayConfig, runThrough } from '../../support/runtime-bench.ts';

type Bench = ReturnType<typeof bench>;

function sweeper(parts: Bench, config: Partial<typeof relayConfig> = {}) {
  const { table, bus, clock, telemetry } = parts;
  const sweep = createRelaySweep({ config: { ...relayConfig, ...config }, table, bus, clock, telemetry });
  return {
    pass: () => runThrough(clock, sweep.pass(clock.now() + 60_000)),
    handler: (timeoutMs: number) => runThrough(clock, sweep.handler({}, lambdaContext({ clock, timeoutMs }))),
  };
}

const state = (parts: Bench) => parts.memory.item(SWEEP_STATE_KEY);
const pointers = (parts: Bench) => parts.memory.items().filter((item) => /^SWEEP#\d/.test(String(item.PK)));

test('a row that the stream path missed is published once its minute has its first age', async () => {
  const parts = bench();
  const sweep = sweeper(parts);
  await parts.outbox.commit({ events: [1, 2, 3].map(parts.happened) });
  await expect(sweep.pass()).resolves.toMatchObject({ published: 0 });
  await parts.clock.advance(2 * MINUTE_MS);
  await expect(sweep.pass()).resolves.toMatchObject({ published: 3, pending: 0, dead: 0, complete: true });
  expect(parts.publishedIds()).toHaveLength(3);
  expect(parts.rows().every((row) => row.status === 'PUBLISHED' && row.publishedBy === 'sweep')).toBe(true);
  expect(parts.telemetry.counted('EventsRescued')).toBe(3);
});

test('a row under a lease is left, and its minute is unsettled until it is clean', async () => {
  const parts = bench();
  const sweep = sweeper(parts);
  await parts.outbox.commit({ events: [parts.happened(1)] });
  const [row] = parts.rows();
  const key = { PK: row?.PK ?? '', SK: row?.SK ?? '' };
  const leaseUntil = parts.clock.now() + 10 * MINUTE_MS;
  await parts.memory.updateEach([{ key, set: { leaseUntil }, when: { status: 'PENDING' } }]);

  await parts.clock.advance(3 * MINUTE_MS);
  const report = await sweep.pass();
  expect(report).toMatchObject({ published: 0, pending: 1, complete: true });
  expect(report.oldestPendingMs).toBeGreaterThanOrEqual(3 * MINUTE_MS);
  const [first] = pointers(parts);
  expect(first).toMatchObject({ SK: minuteOf(leaseUntil - 10 * MINUTE_MS), token: expect.any(String) });

  await parts.clock.advance(MINUTE_MS);
  await sweep.pass();
  expect(pointers(parts)[0]?.token).not.toBe(first?.token); // every put is a fresh token

  await parts.clock.advance(7 * MINUTE_MS);
  await expect(sweep.pass()).resolves.toMatchObject({ published: 1, pending: 0 });
  await sweep.pass();
  expect(pointers(parts)).toEqual([]);
});

test('a PENDING row that cannot be read is not overlooked, and holds up nobody', async () => {
  const parts = bench();
  await parts.outbox.commit({ events: [parts.happened(1)] });
  const [row] = parts.rows();
  await parts.memory.write({ Put: { Item: { PK: row?.PK, SK: 'EVENT#edited-by-hand', status: 'PENDING' } } });
  await parts.clock.advance(2 * MINUTE_MS);
  await expect(sweeper(parts).pass()).resolves.toMatchObject({ published: 1, pending: 1, complete: true });
  expect(pointers(parts)).toHaveLength(1);
  expect(parts.telemetry.lines().some(({ level }) => level === 'error')).toBe(true);
});

test('an unsettled pointer that was put anew is not removed', async () => {
  const parts = bench();
  await parts.memory.write({
    Put: { Item: { PK: 'SWEEP#00', SK: '2025-12-31T23:00', schema: 1, token: 'old' } },
  });
  const table = {
    ...parts.memory,
    query: async (query: Parameters<typeof parts.memory.query>[0]) => {
      const page = await parts.memory.query(query);
      if (query.consistent) {
        await parts.memory.write({
          Put: { Item: { PK: 'SWEEP#00', SK: '2025-12-31T23:00', schema: 1, token: 'new' } },
        });
      }
      return page;
    },
  };
  await sweeper({ ...parts, table }).pass();
  expect(pointers(parts)).toMatchObject([{ token: 'new' }]);
});

test('without a state the sweep reads from the table’s creation', async () => {
  const parts = bench();
  await parts.outbox.commit({ events: [parts.happened(1)] });
  await parts.clock.advance(3 * 86_400_000);
  await expect(sweeper(parts).pass()).resolves.toMatchObject({ published: 1, complete: true });
  expect(state(parts)).toMatchObject({ shards: 2, schema: 1 });
});

test('the state is the time that the pass started with, and only moves when all was read', async () => {
  const parts = bench();
  await sweeper(parts).pass();
  await parts.clock.advance(5 * MINUTE_MS);
  const startedAt = parts.clock.now();
  const slow = {
    ...parts.memory,
    query: async (query: Parameters<typeof parts.memory.query>[0]) => {
      await parts.clock.sleep(100);
      return parts.memory.query(query);
    },
  };
  await sweeper({ ...parts, table: slow }).pass();
  expect(state(parts)?.sweptTo).toBe(startedAt);

  await parts.clock.advance(5 * MINUTE_MS);
  const broken = {
    ...parts.memory,
    query: async (query: Parameters<typeof parts.memory.query>[0]) => {
      if (query.pk.startsWith('OUTBOX#') && query.pk.endsWith('01'))
        throw new Error('ProvisionedThroughputExceeded');
      return parts.memory.query(query);
    },
  };
  await expect(sweeper({ ...parts, table: broken }).pass()).resolves.toMatchObject({ complete: false });
  expect(state(parts)?.sweptTo).toBe(startedAt);
});

test('a state in the future is a wrong clock’s: the last 1024 minutes are read, and it is put right', async () => {
  const parts = bench();
  const sweep = sweeper(parts);
  await sweep.pass();
  await parts.outbox.commit({ events: [parts.happened(1)] });
  await parts.clock.advance(600 * MINUTE_MS);
  const future = parts.clock.now() + 10 * MINUTE_MS;
  await parts.memory.write({ Put: { Item: { ...SWEEP_STATE_KEY, sweptTo: future, shards: 2, schema: 1 } } });
  const startedAt = parts.clock.now();
  await expect(sweep.pass()).resolves.toMatchObject({ published: 1 });
  expect(state(parts)?.sweptTo).toBe(startedAt);
});

test('the highest number of shards ever used is kept and read', async () => {
  const parts = bench();
  await sweeper(parts, { shards: 4 }).pass();
  expect(state(parts)).toMatchObject({ shards: 4 });
  const item = { schema: 1, token: 't' };
  await parts.memory.write({ Put: { Item: { PK: 'SWEEP#03', SK: '2025-12-31T23:00', ...item } } });
  await sweeper(parts, { shards: 2 }).pass();
  expect(state(parts)).toMatchObject({ shards: 4 });
  expect(pointers(parts)).toEqual([]); // also the pointer in a shard that is not written to any more
});

test('while the bus is down nothing is counted, few calls are made, and rows are let go of with the reason', async () => {
  let down = true;
  const parts = bench({
    bus: { failCall: () => (down ? { error: new Error('connect ETIMEDOUT') } : undefined) },
  });
  const sweep = sweeper(parts);
  await parts.outbox.commit({ events: Array.from({ length: 90 }, (_, n) => parts.happened(n)) });
  await parts.clock.advance(2 * MINUTE_MS);
  await expect(sweep.pass()).resolves.toMatchObject({ published: 0, pending: 90 });
  expect(parts.bus.calls().length).toBeLessThan(40); // 9 calls are enough for all, 3 tries each, but shards go side by side
  expect(parts.rows().every((row) => row.status === 'PENDING' && row.attempts === 0)).toBe(true);
  expect(parts.rows().some((row) => row.fingerprint?.startsWith('relay '))).toBe(true);
  expect(parts.telemetry.counted('BusFailures')).toBeGreaterThan(0);
  down = false;
  for (let minute = 0; minute < 5; minute += 1) {
    await parts.clock.advance(MINUTE_MS);
    await sweep.pass();
  }
  expect(parts.publishedIds()).toHaveLength(90);
  expect(parts.rows().every((row) => row.status === 'PUBLISHED')).toBe(true);
});

test('the report says for how long a row has been nobody’s: not while it is held, nor once it was served', async () => {
  let tableDown = false;
  let busDown = true;
  const parts = bench({
    bus: { failCall: () => (busDown ? { error: new Error('connect ETIMEDOUT') } : undefined) },
    wrap: (memory) => ({
      ...memory,
      updateEach: async (updates) => {
        if (tableDown) throw new Error('throttled');
        return memory.updateEach(updates);
      },
    }),
  });
  const sweep = sweeper(parts, { sweepEveryMs: 10 * MINUTE_MS });
  const gauges = () => parts.telemetry.durations('OldestLeaseAge');
  await parts.outbox.commit({ events: [1, 2, 3].map(parts.happened) });
  const [row] = parts.rows();
  const bornUntil = row?.leaseUntil ?? 0;
  const key = { PK: row?.PK ?? '', SK: row?.SK ?? '' };
  await sweep.pass();
  expect(gauges()).toEqual([0]);

  // Two that are nobody's, and that cannot be claimed; one is held.
  tableDown = true;
  await parts.clock.advance(3 * MINUTE_MS);
  const held = { leaseUntil: parts.clock.now() + MINUTE_MS };
  await parts.memory.updateEach([{ key, set: held, when: { status: 'PENDING' } }]);
  const report = await sweep.pass();
  expect(report).toMatchObject({ pending: 3, oldestLeaseMs: gauges()[1] });
  expect(parts.clock.now() - report.oldestLeaseMs - bornUntil).toBeLessThan(1_000);

  // They have their turn; the bus does not take them.
  tableDown = false;
  await parts.clock.advance(MINUTE_MS - 10_000);
  await expect(sweep.pass()).resolves.toMatchObject({ pending: 3, oldestLeaseMs: 0 });

  busDown = false;
  await parts.clock.advance(30 * MINUTE_MS);
  await expect(sweep.pass()).resolves.toMatchObject({ published: 3, pending: 0, oldestLeaseMs: 0 });
});

test('a service that may not publish any more does not hold up the others', async () => {
  const parts = bench({
    bus: {
      failEntry: (entry) =>
        entry.source === 'banned' ? { code: 'NotAuthorizedForSourceException', message: 'no' } : undefined,
    },
  });
  const banned = createOutbox({
    config: { ...consumerConfig, service: 'banned' },
    table: parts.memory,
    clock: parts.clock,
  });
  const sweep = sweeper(parts);
  for (let n = 0; n < 10; n += 1) {
    await banned.commit({ events: Array.from({ length: 50 }, (_, i) => parts.happened(i)) });
  }
  await parts.outbox.commit({ events: [1, 2, 3, 4, 5].map(parts.happened) });
  await parts.clock.advance(2 * MINUTE_MS);
  await expect(sweep.pass()).resolves.toMatchObject({ published: 5, pending: 500, complete: true });
  expect(parts.rows().filter((row) => row.source === 'banned' && row.status !== 'PENDING')).toEqual([]);
});

test.each([1, 10])('nor on a bus that takes its time, with %i times as much in front', async (times) => {
  const parts = bench({
    bus: {
      failEntry: (entry) =>
        entry.source === 'banned' ? { code: 'NotAuthorizedForSourceException', message: 'no' } : undefined,
    },
  });
  const bus = {
    ...parts.bus,
    put: async (...args: Parameters<typeof parts.bus.put>) => {
      await parts.clock.sleep(50);
      return parts.bus.put(...args);
    },
  };
  const banned = createOutbox({
    config: { ...consumerConfig, service: 'banned' },
    table: parts.memory,
    clock: parts.clock,
  });
  for (let n = 0; n < 4 * times; n += 1) {
    await banned.commit({ events: Array.from({ length: 50 }, (_, i) => parts.happened(i)) });
  }
  await parts.clock.advance(MINUTE_MS);
  await parts.outbox.commit({ events: [1, 2, 3, 4, 5].map(parts.happened) });
  await parts.clock.advance(2 * MINUTE_MS);
  await expect(sweeper({ ...parts, bus }).pass()).resolves.toMatchObject({ published: 5, complete: true });
});

test('one event with which every call fails does not take its neighbours along for ever', async () => {
  const parts = bench({
    bus: {
      failCall: ({ entries }) =>
        entries.some((entry) => entry.detail.includes('"n":0}')) ? { error: new Error('500') } : undefined,
    },
  });
  await parts.outbox.commit({ events: [0, 1, 2, 3, 4].map(parts.happened) });
  const sweep = sweeper(parts);
  for (let minute = 0; minute < 60; minute += 1) {
    await parts.clock.advance(MINUTE_MS);
    await sweep.pass();
  }
  expect(parts.publishedIds()).toHaveLength(4);
});

test('one event that the bus always fails does not hold up those behind it', async () => {
  const parts = bench({
    bus: {
      failEntry: (entry) =>
        entry.detail.includes('"n":0}') ? { code: 'InternalFailure', message: 'oops' } : undefined,
    },
  });
  const sweep = sweeper(parts);
  await parts.outbox.commit({ events: [parts.happened(0)] });
  await parts.clock.advance(MINUTE_MS);
  await parts.outbox.commit({ events: [1, 2, 3].map(parts.happened) });
  for (let minute = 0; minute < 4; minute += 1) {
    await parts.clock.advance(MINUTE_MS);
    await sweep.pass();
  }
  expect(parts.publishedIds()).toHaveLength(3);
  expect(parts.rows().filter((row) => row.status === 'PENDING')).toMatchObject([
    { attempts: 0, lastError: 'oops' },
  ]);
});

test('many events that the bus always fails do not hold up those behind them', async () => {
  const parts = bench({
    bus: {
      failEntry: (entry) =>
        entry.detail.includes('"n":0}') ? { code: 'InternalFailure', message: 'oops' } : undefined,
    },
  });
  const sweep = sweeper(parts);
  for (let n = 0; n < 10; n += 1) {
    await parts.outbox.commit({ events: Array.from({ length: 40 }, () => parts.happened(0)) });
  }
  await parts.clock.advance(1_000);
  await parts.outbox.commit({ events: [1, 2, 3].map(parts.happened) });
  for (let minute = 0; minute < 8; minute += 1) {
    await parts.clock.advance(MINUTE_MS);
    await sweep.pass();
  }
  expect(parts.publishedIds()).toHaveLength(3);
  expect(parts.rows().filter((row) => row.status === 'PENDING')).toHaveLength(400);
});

test('the calls that a sweep may have under way are shared out to its shards', async () => {
  const parts = bench();
  const { clock, memory, telemetry } = parts;
  for (let n = 0; n < 6; n += 1) {
    await parts.outbox.commit({ events: Array.from({ length: 50 }, (_, i) => parts.happened(n * 50 + i)) });
  }
  await clock.advance(2 * MINUTE_MS);
  const underWay: string[] = [];
  const met: string[][] = [];
  const bus = {
    ...parts.bus,
    put: async (...args: Parameters<typeof parts.bus.put>) => {
      const { eventId } = JSON.parse(args[0][0]?.detail ?? '') as { eventId: string };
      underWay.push(eventId.slice(-2));
      met.push([...underWay].sort());
      await clock.sleep(5);
      underWay.splice(underWay.indexOf(eventId.slice(-2)), 1);
      return parts.bus.put(...args);
    },
  };
  const sweep = createRelaySweep({
    config: relayConfig,
    table: memory,
    bus,
    clock,
    telemetry,
    concurrency: 4,
  });
  await expect(runThrough(clock, sweep.pass(clock.now() + 60_000))).resolves.toMatchObject({
    published: 300,
  });
  expect(met.every((shards) => shards.length <= 4)).toBe(true);
  expect(met).toContainEqual(['00', '00', '01', '01']);
});

test('a row that was published but could not be marked keeps its minute unsettled', async () => {
  const parts = bench();
  await parts.outbox.commit({ events: [parts.happened(1)] });
  await parts.clock.advance(2 * MINUTE_MS);
  const broken = {
    ...parts.memory,
    updateEach: async (updates: Parameters<typeof parts.memory.updateEach>[0]) => {
      if (updates[0]?.set.status === 'PUBLISHED') throw new Error('connect ECONNREFUSED');
      return parts.memory.updateEach(updates);
    },
  };
  await expect(sweeper({ ...parts, table: broken }).pass()).resolves.toMatchObject({
    published: 1,
    pending: 1,
  });
  expect(pointers(parts)).toHaveLength(1);
  await parts.clock.advance(2 * MINUTE_MS);
  await sweeper(parts).pass();
  expect(parts.rows()).toMatchObject([{ status: 'PUBLISHED' }]);
});

test('a long pass that does not come to its end goes on where it stopped', async () => {
  const parts = bench();
  await parts.clock.advance(120 * MINUTE_MS);
  const slow = {
    ...parts.memory,
    query: async (query: Parameters<typeof parts.memory.query>[0]) => {
      await parts.clock.sleep(100);
      return parts.memory.query(query);
    },
  };
  const sweep = sweeper({ ...parts, table: slow });
  const reached: number[] = [];
  for (let pass = 0; pass < 6; pass += 1) {
    const { complete } = await sweep.pass();
    reached.push(Number(state(parts)?.sweptTo ?? 0));
    if (complete) break;
  }
  expect(reached.length).toBeGreaterThan(1);
  expect(reached).toEqual([...new Set(reached)].sort((a, b) => a - b));
});

test('an event whose attempts are spent is DEAD, is counted, and holds up nobody', async () => {
  const parts = bench({
    bus: {
      failEntry: (entry) =>
        entry.detail.includes('"n":1,') || entry.detail.includes('"n":1}')
          ? { code: 'Odd', message: 'odd' }
          : undefined,
    },
  });
  const sweep = sweeper(parts);
  await parts.outbox.commit({ events: [1, 2].map(parts.happened) });
  for (let minute = 0; minute < 8; minute += 1) {
    await parts.clock.advance(MINUTE_MS);
    await sweep.pass();
  }
  expect(
    parts
      .rows()
      .map((row) => row.status)
      .sort(),
  ).toEqual(['DEAD', 'PUBLISHED']);
  expect(parts.rows().find((row) => row.status === 'DEAD')).toMatchObject({ attempts: 3 });
  await expect(sweep.pass()).resolves.toMatchObject({ dead: 1, pending: 0 });
});

test('a backlog is drained in one pass', async () => {
  const parts = bench();
  const sweep = sweeper(parts);
  await sweep.pass();
  for (let n = 0; n < 20; n += 1) {
    await parts.outbox.commit({ events: Array.from({ length: 50 }, (_, i) => parts.happened(n * 50 + i)) });
    await parts.clock.advance(10_000);
  }
  await parts.clock.advance(3 * MINUTE_MS);
  await expect(sweep.pass()).resolves.toMatchObject({ published: 1000, pending: 0, complete: true });
  expect(new Set(parts.publishedIds()).size).toBe(1000);
  expect(parts.publishedIds()).toHaveLength(1000);
});

test('two sweeps at once publish each event once', async () => {
  const parts = bench();
  await parts.outbox.commit({ events: Array.from({ length: 60 }, (_, n) => parts.happened(n)) });
  await parts.clock.advance(2 * MINUTE_MS);
  const sweeps = [sweeper(parts), sweeper(parts)];
  await Promise.all(sweeps.map((sweep) => sweep.pass()));
  expect(parts.publishedIds()).toHaveLength(60);
});

test('more often than each minute, the sweep loops over the youngest minutes inside its invocation', async () => {
  const parts = bench();
  const sweep = sweeper(parts, { sweepEveryMs: 5_000 });
  await parts.outbox.commit({ events: [parts.happened(1)] });
  const startedAt = parts.clock.now();
  await expect(sweep.handler(65_000)).resolves.toMatchObject({ published: 1 });
  expect(parts.clock.now() - startedAt).toBeLessThan(62_000);
  const publishedAt = parts.rows()[0]?.publishedAt ?? 0;
  expect(publishedAt - startedAt).toBeGreaterThan(32_000); // the born lease and the margin
  expect(publishedAt - startedAt).toBeLessThan(40_000);
});

test('the watch over dead letters looks once in each invocation, after the pass, and knows when it must be over', async () => {
  const parts = bench();
  const { table, bus, clock, telemetry } = parts;
  const looks: number[] = [];
  const sweep = createRelaySweep({
    config: { ...relayConfig, sweepEveryMs: 5_000 },
    table,
    bus,
    clock,
    telemetry,
    watch: async (given, endsBy) => {
      expect(given).toBe(telemetry);
      expect(telemetry.durations('OldestPendingAge')).toHaveLength(1);
      looks.push(endsBy);
    },
  });
  const startedAt = clock.now();
  await runThrough(clock, sweep.handler({}, lambdaContext({ clock, timeoutMs: 65_000 })));
  expect(looks).toEqual([startedAt + 65_000]);
  await runThrough(clock, sweep.pass(clock.now() + 60_000));
  expect(looks).toHaveLength(1); // it is no part of a pass
});

test('a pass that runs out of time leaves its range to the next one', async () => {
  const parts = bench();
  await parts.outbox.commit({ events: [parts.happened(1)] });
  await parts.clock.advance(2 * MINUTE_MS);
  const { table, bus, clock, telemetry } = parts;
  const sweep = createRelaySweep({ config: relayConfig, table, bus, clock, telemetry });
  await expect(runThrough(clock, sweep.pass(clock.now() + 5_000))).resolves.toMatchObject({
    published: 0,
    complete: false,
  });
  expect(state(parts)?.sweptTo).toBeUndefined();
  await expect(sweeper(parts).pass()).resolves.toMatchObject({ published: 1 });
});
