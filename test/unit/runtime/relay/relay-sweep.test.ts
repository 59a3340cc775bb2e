import { expect, test } from 'vitest';
import { MINUTE_MS } from '../../../../lambdas/runtime/base/units.ts';
import { createRelaySweep, createSweepPass } from '../../../../lambdas/runtime/relay/relay-sweep.ts';
import { requeueDead } from '../../../../lambdas/runtime/store/dynamo/outbox-operator.ts';
import { lambdaContext } from '../../../../testing/index.ts';
import { relayConfig, rig, runThrough } from '../../../support/runtime-rig.ts';
import { pointers, sweeper } from './relay-sweep-rig.ts';

test('a row that the stream relay missed is published once its minute has its first age', async () => {
  const parts = rig();
  const sweep = sweeper(parts);
  await parts.outbox.commit({ events: [1, 2, 3].map(parts.happened) });
  await expect(sweep.pass()).resolves.toMatchObject({ published: 0 });
  await parts.clock.advance(2 * MINUTE_MS);
  await expect(sweep.pass()).resolves.toMatchObject({ published: 3, pending: 0, dead: 0, complete: true });
  expect(parts.publishedIds()).toHaveLength(3);
  expect(parts.rows().every((row) => row.status === 'PUBLISHED' && row.publishedBy === 'sweep')).toBe(true);
  expect(parts.telemetry.counted('EventsRescued')).toBe(3);
});

test('a row is left alone until a clock margin after its lease has ended', async () => {
  const parts = rig();
  await parts.outbox.commit({ events: [parts.happened(1)] });
  await parts.clock.advance(2 * MINUTE_MS);
  const [{ PK, SK } = { PK: '', SK: '' }] = parts.rows();
  const set = { leaseUntil: parts.clock.now() - 1_000 };
  await parts.memory.updateEach([{ key: { PK, SK }, set, when: { status: 'PENDING' } }]);
  await expect(sweeper(parts).pass()).resolves.toMatchObject({ published: 0, pending: 1 });
  await parts.clock.advance(MINUTE_MS);
  await expect(sweeper(parts).pass()).resolves.toMatchObject({ published: 1, pending: 0 });
});

test('the age of a requeued event counts from its requeue, that of any other from its commit', async () => {
  let refused = true;
  const busDown = { error: new Error('connect ETIMEDOUT') };
  const parts = rig({
    bus: {
      failEntry: () => (refused ? { code: 'InvalidArgument', message: 'no JSON object' } : undefined),
      failCall: () => (refused ? undefined : busDown),
    },
  });
  const sweep = sweeper(parts);
  const [event] = await parts.outbox.commit({ events: [parts.happened(1)] });
  await parts.clock.advance(2 * MINUTE_MS);
  await expect(sweep.pass()).resolves.toMatchObject({ dead: 1 });
  refused = false;
  await parts.clock.advance(60 * MINUTE_MS);
  const requeuedAt = parts.clock.now();
  const note = { by: 'ada', reason: 'the bus is back' };
  await requeueDead({ ...parts, table: parts.memory }, event?.eventId ?? '', note);
  await parts.clock.advance(MINUTE_MS);
  const since = async () => {
    const { oldestPendingMs } = await sweep.pass();
    return parts.clock.now() - oldestPendingMs;
  };
  expect(Math.abs((await since()) - requeuedAt)).toBeLessThan(1_000);

  const committedAt = parts.clock.now();
  await parts.outbox.commit({ events: [parts.happened(2)] });
  const row = parts.rows().find(({ requeuedBy }) => requeuedBy === 'ada');
  await parts.memory.write({ Put: { Item: { ...row, requeuedAt: committedAt + MINUTE_MS } } });
  await parts.clock.advance(2 * MINUTE_MS);
  expect(Math.abs((await since()) - committedAt)).toBeLessThan(1_000);
});

test('an unreadable PENDING row is reported, and blocks no other row', async () => {
  const parts = rig();
  await parts.outbox.commit({ events: [parts.happened(1)] });
  const [row] = parts.rows();
  await parts.memory.write({ Put: { Item: { PK: row?.PK, SK: 'EVENT#edited-by-hand', status: 'PENDING' } } });
  await parts.clock.advance(2 * MINUTE_MS);
  await expect(sweeper(parts).pass()).resolves.toMatchObject({ published: 1, pending: 1, complete: true });
  expect(pointers(parts)).toHaveLength(1);
  expect(parts.telemetry.lines().some(({ level }) => level === 'error')).toBe(true);
});

test.each([
  { schema: 2 },
  { schema: '1' },
  { schema: 0 },
  { schema: null },
  { encoding: 'zstd' },
  { encoding: null },
])(
  'a PENDING row of %j, which this version does not know, stays as it is, keeps its minute unsettled and is reported',
  async (newer) => {
    const parts = rig();
    await parts.outbox.commit({ events: [parts.happened(1)] });
    await parts.outbox.commit({ events: [parts.happened(2)] });
    const [unknown, known] = parts.rows();
    await parts.memory.write({ Put: { Item: { ...unknown, ...newer } } });
    await parts.clock.advance(2 * MINUTE_MS);
    await expect(sweeper(parts).pass()).resolves.toMatchObject({ published: 1, pending: 1 });
    await parts.clock.advance(60 * MINUTE_MS);
    await expect(sweeper(parts).pass()).resolves.toMatchObject({ published: 0, pending: 1 });
    expect(parts.publishedIds()).toEqual([known?.SK.slice('EVENT#'.length)]);
    expect(parts.rows()).toContainEqual({ ...unknown, ...newer });
    expect(pointers(parts)).toMatchObject([{ SK: unknown?.PK.split('#')[1] }]);
    expect(parts.telemetry.lines()).toContainEqual(
      expect.objectContaining({ level: 'error', message: expect.stringContaining('cannot be read') }),
    );

    // The relay of the version that wrote it knows what it says.
    await parts.memory.write({ Put: { Item: { ...unknown } } });
    await expect(sweeper(parts).pass()).resolves.toMatchObject({ published: 1, pending: 0 });
  },
);

test('a copy of a row in another partition is reported and not published', async () => {
  const parts = rig();
  await parts.outbox.commit({ events: [parts.happened(1)] });
  const [row] = parts.rows();
  const PK = row?.PK.replace(/T\d\d:\d\d/, 'T00:01');
  expect(PK).not.toBe(row?.PK);
  await parts.memory.write({ Put: { Item: { ...row, PK } } });
  await parts.clock.advance(5 * MINUTE_MS);
  await expect(sweeper(parts).pass()).resolves.toMatchObject({ published: 1, pending: 1 });
  expect(parts.publishedIds()).toHaveLength(1);
});

test('the report says for how long a row has been without an owner: not while it is held, nor once it was served', async () => {
  let tableDown = false;
  let busDown = true;
  const parts = rig({
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

test('the calls that a sweep may have under way are shared out to its shards', async () => {
  const parts = rig();
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
  const sweep = createSweepPass({
    config: relayConfig,
    table: memory,
    bus,
    clock,
    telemetry,
    concurrency: 4,
  });
  await expect(runThrough(clock, sweep(clock.now() + 60_000))).resolves.toMatchObject({
    published: 300,
  });
  expect(met.every((shards) => shards.length <= 4)).toBe(true);
  expect(met).toContainEqual(['00', '00', '01', '01']);
});

test('a backlog is drained in one pass', async () => {
  const parts = rig();
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
  const parts = rig();
  await parts.outbox.commit({ events: Array.from({ length: 60 }, (_, n) => parts.happened(n)) });
  await parts.clock.advance(2 * MINUTE_MS);
  const sweeps = [sweeper(parts), sweeper(parts)];
  await Promise.all(sweeps.map((sweep) => sweep.pass()));
  expect(parts.publishedIds()).toHaveLength(60);
});

test('more often than each minute, the sweep loops over the youngest minutes inside its invocation', async () => {
  const parts = rig();
  const sweep = sweeper(parts, { sweepEveryMs: 5_000 });
  await parts.outbox.commit({ events: [parts.happened(1)] });
  const startedAt = parts.clock.now();
  await expect(sweep.handler(65_000)).resolves.toMatchObject({ published: 1 });
  expect(parts.clock.now() - startedAt).toBeLessThan(54_000); // 10 s before the function is stopped
  const publishedAt = parts.rows()[0]?.publishedAt ?? 0;
  expect(publishedAt - startedAt).toBeGreaterThan(32_000); // the stream lease and the margin
  expect(publishedAt - startedAt).toBeLessThan(40_000);
});

test('the dead-letter watch runs once per invocation, after the pass, with a deadline', async () => {
  const parts = rig();
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
  await runThrough(clock, sweep({}, lambdaContext({ clock, timeoutMs: 65_000 })));
  expect(looks).toEqual([startedAt + 65_000]);
});
