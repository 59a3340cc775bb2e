import { describe, expect, test } from 'vitest';
import { HOUR_MS, MINUTE_MS } from '../../../../lambdas/runtime/base/units.ts';
import type { Bus } from '../../../../lambdas/runtime/bus/event-bus.ts';
import { createSweepPass } from '../../../../lambdas/runtime/relay/relay-sweep.ts';
import { createOutbox } from '../../../../lambdas/runtime/store/dynamo/outbox.ts';
import { requeueDead } from '../../../../lambdas/runtime/store/dynamo/outbox-operator.ts';
import { minuteOf } from '../../../../lambdas/runtime/store/event-id.ts';
import { SWEEP_STATE_KEY } from '../../../../lambdas/runtime/store/keys.ts';
import type { Item, Query } from '../../../../lambdas/runtime/store/table.ts';
import { consumerConfig, relayConfig, rig, runThrough } from '../../../support/runtime-rig.ts';
import { pointers } from './relay-sweep-rig.ts';

const SHARDS = { shards: 1 };

/** A pass of 60 s stops 10 s before its end: after three pages of one event, each read and published in 17 s. */
const PAGE_MS = 15_000;
const PUT_MS = 2_000;

/** One minute with some rows, of which a pass has the time to read only three pages. */
async function longMinute({ rows = 9, pageRows = 1, pageMs = PAGE_MS, putMs = PUT_MS } = {}) {
  const parts = rig();
  const { memory, clock, telemetry } = parts;
  const outbox = createOutbox({ config: { ...consumerConfig, ...SHARDS }, table: memory, clock });
  const minute = minuteOf(clock.now());
  for (let n = 0; n < rows; n += 50)
    await outbox.commit({
      events: Array.from({ length: Math.min(50, rows - n) }, (_, i) => parts.happened(n + i)),
    });
  const keys = parts
    .rows()
    .map(({ SK }) => SK)
    .sort();
  const reads: (string | undefined)[] = [];
  let beforeRead = async (_after: string | undefined): Promise<void> => {};
  const query = async (asked: Query) => {
    if (!asked.pk.includes(minute)) return memory.query(asked);
    const after = asked.cursor && String(asked.cursor.SK);
    reads.push(after);
    await beforeRead(after);
    await clock.sleep(pageMs);
    return memory.query({ ...asked, limit: pageRows });
  };
  const bus: Bus = {
    put: async (entries, timeoutMs) => {
      await clock.sleep(putMs);
      return parts.bus.put(entries, timeoutMs);
    },
  };
  const pass = async () => {
    const config = { ...relayConfig, ...SHARDS };
    const deps = { config, table: { ...memory, query }, bus, clock, telemetry, concurrency: 1 };
    return runThrough(clock, createSweepPass(deps)(clock.now() + 60_000));
  };
  const set = (n: number, values: Item) =>
    memory.updateEach([
      { key: { PK: String(parts.rows()[0]?.PK), SK: keys[n] ?? '' }, set: values, when: {} },
    ]);
  return {
    ...parts,
    commit: (event: ReturnType<typeof parts.happened>) => outbox.commit({ events: [event] }),
    minute,
    keys,
    reads,
    pass,
    set,
    beforeReads: (hook: typeof beforeRead) => {
      beforeRead = hook;
    },
    /** From now on, the minute is past all ages, and unsettled. */
    unsettle: async () => {
      await clock.advance(2 * 1024 * MINUTE_MS);
      const state = { ...SWEEP_STATE_KEY, schema: 1, ...SHARDS, sweptTo: clock.now() };
      await memory.write({ Put: { Item: state } });
      await memory.write({ Put: { Item: { PK: 'SWEEP#00', SK: minute, schema: 1, token: 'seeded' } } });
    },
  };
}

describe('a minute that takes more than one pass', () => {
  test('is continued by the next one: each of its pages is read once, and then it is settled', async () => {
    const parts = await longMinute();
    await parts.unsettle();
    await parts.pass();
    expect(pointers(parts)).toMatchObject([{ SK: parts.minute, after: parts.keys[2] }]);
    expect(pointers(parts)[0]).not.toHaveProperty('left');
    for (let passes = 0; passes < 3; passes += 1) await parts.pass();
    expect(parts.reads).toEqual([undefined, ...parts.keys]);
    expect(parts.publishedIds()).toHaveLength(9);
    expect(pointers(parts)).toEqual([]);
  });

  test('stays unsettled for what its first part left PENDING, and starts over', async () => {
    const parts = await longMinute({ rows: 4 });
    await parts.unsettle();
    await parts.set(0, { leaseUntil: parts.clock.now() + HOUR_MS });
    // The fourth event had no turn: it is not left, but still to be read.
    await expect(parts.pass()).resolves.toMatchObject({ pending: 2 });
    expect(pointers(parts)).toMatchObject([{ after: parts.keys[2], left: { rows: 1, undeclared: 0 } }]);
    const report = await parts.pass();
    expect(report).toMatchObject({ pending: 1 });
    expect(report.oldestPendingMs).toBeGreaterThan(2 * 1024 * MINUTE_MS);
    expect(pointers(parts)).toMatchObject([{ SK: parts.minute }]);
    expect(pointers(parts)[0]).not.toHaveProperty('after');
    await parts.clock.advance(HOUR_MS);
    for (let passes = 0; passes < 4; passes += 1) await parts.pass();
    expect(parts.publishedIds()).toHaveLength(4);
    expect(pointers(parts)).toEqual([]);
  });

  test('starts over when an event of its first part was requeued meanwhile', async () => {
    const parts = await longMinute();
    await parts.unsettle();
    const eventId = String(parts.keys[0]?.slice('EVENT#'.length));
    await parts.set(0, { status: 'DEAD' });
    parts.beforeReads(async (after) => {
      if (after === parts.keys[1]) await requeueDead({ ...parts, table: parts.memory }, eventId);
    });
    await parts.pass();
    expect(pointers(parts)).toMatchObject([{ SK: parts.minute }]);
    expect(pointers(parts)[0]).not.toHaveProperty('after');
    parts.beforeReads(async () => {});
    await parts.pass();
    expect(parts.publishedIds()).toContain(eventId);
  });

  test('keeps its place before a page of which not every row had its turn', async () => {
    const parts = await longMinute({ rows: 300, pageRows: 100, pageMs: 0 });
    await parts.unsettle();
    await parts.pass();
    expect(parts.publishedIds().length).toBeGreaterThan(200);
    expect(parts.publishedIds().length).toBeLessThan(300);
    expect(pointers(parts)).toMatchObject([{ after: parts.keys[199] }]);
    await parts.clock.advance(MINUTE_MS);
    await parts.pass();
    expect(parts.publishedIds()).toHaveLength(300);
    expect(pointers(parts)).toEqual([]);
  });

  test('does not keep other minutes from being read', async () => {
    const parts = await longMinute({ rows: 12 });
    await parts.clock.advance(3 * MINUTE_MS);
    await parts.commit(parts.happened(99));
    await parts.clock.advance(2 * MINUTE_MS);
    const other = parts
      .rows()
      .find(({ PK }) => !PK.includes(parts.minute))
      ?.SK.slice('EVENT#'.length);
    for (let passes = 0; passes < 4; passes += 1) await parts.pass();
    expect(parts.publishedIds()).toContain(other);
    for (let passes = 0; passes < 20 && pointers(parts).length > 0; passes += 1) await parts.pass();
    expect(parts.rows().filter(({ status }) => status === 'PENDING')).toEqual([]);
    expect(pointers(parts)).toEqual([]);
  });

  test('is walked from its beginning again when it comes to another age, to find late commits', async () => {
    const parts = await longMinute();
    await parts.clock.advance(2 * MINUTE_MS);
    await parts.pass();
    await parts.memory.write({
      Put: {
        Item: { PK: 'SWEEP#00', SK: parts.minute, schema: 1, token: 'half-way', after: parts.keys[5] },
      },
    });
    // The minute ended less than four minutes ago: it comes to that age now.
    await parts.clock.advance(3 * MINUTE_MS);
    parts.reads.length = 0;
    await parts.pass();
    expect(parts.reads[0]).toBeUndefined();
    expect(pointers(parts)[0]?.token).not.toBe('half-way');
  });
});
