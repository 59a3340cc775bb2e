import { describe, expect, test } from 'vitest';
import { MINUTE_MS } from '../../../../lambdas/runtime/base/units.ts';
import { createOutbox } from '../../../../lambdas/runtime/store/dynamo/outbox.ts';
import { minuteOf } from '../../../../lambdas/runtime/store/event-id.ts';
import { SWEEP_STATE_KEY } from '../../../../lambdas/runtime/store/keys.ts';
import type { Table, Write } from '../../../../lambdas/runtime/store/table.ts';
import { consumerConfig, rig } from '../../../support/runtime-rig.ts';
import { breaking, isPointer, pointers, state, sweeper } from './relay-sweep-rig.ts';

const SHARDS = { shards: 1 };

/** One event in an old minute and one in a newer one, both in shard 0 and both due in the next pass. */
async function twoMinutes() {
  const parts = rig();
  const { memory: table, clock } = parts;
  const outbox = createOutbox({ config: { ...consumerConfig, ...SHARDS }, table, clock });
  await clock.advance(MINUTE_MS);
  await sweeper(parts, SHARDS).pass();
  await outbox.commit({ events: [parts.happened(1)] });
  const oldMinute = minuteOf(parts.clock.now());
  await parts.clock.advance(3 * MINUTE_MS);
  await outbox.commit({ events: [parts.happened(2)] });
  const newMinute = minuteOf(parts.clock.now());
  await parts.clock.advance(2 * MINUTE_MS);
  const [oldEvent, newEvent] = parts.rows().map(({ SK }) => SK.slice('EVENT#'.length));
  return { ...parts, oldMinute, newMinute, oldEvent, newEvent };
}

describe('a step of the sweep that fails does not hold up the newer minutes:', () => {
  test('a minute that cannot be read gets a pointer, and those after it are swept in the same pass', async () => {
    const parts = await twoMinutes();
    const { broken, table } = breaking(parts, { query: ({ pk }) => pk.includes(parts.oldMinute) });
    const sweep = sweeper({ ...parts, table }, SHARDS);
    const startedAt = parts.clock.now();
    await expect(sweep.pass()).resolves.toMatchObject({ published: 1, complete: false });
    expect(parts.publishedIds()).toEqual([parts.newEvent]);
    expect(pointers(parts)).toMatchObject([{ SK: parts.oldMinute }]);
    expect(state(parts)?.sweptTo).toBe(startedAt);
    expect(parts.telemetry.counted('SweepFailures')).toBeGreaterThan(0);

    broken.is = false;
    await parts.clock.advance(MINUTE_MS);
    await expect(sweep.pass()).resolves.toMatchObject({ published: 1, complete: true });
    expect(parts.publishedIds()).toEqual([parts.newEvent, parts.oldEvent]);
    await sweep.pass();
    expect(pointers(parts)).toEqual([]);
  });

  test('where the pointer cannot be written either, the state stays before that minute', async () => {
    const parts = await twoMinutes();
    const before = state(parts)?.sweptTo;
    const { broken, table } = breaking(parts, {
      query: ({ pk }) => pk.includes(parts.oldMinute),
      write: isPointer,
    });
    const sweep = sweeper({ ...parts, table }, SHARDS);
    await expect(sweep.pass()).resolves.toMatchObject({ published: 1, complete: false });
    expect(parts.publishedIds()).toEqual([parts.newEvent]);
    const sweptTo = Number(state(parts)?.sweptTo);
    expect(sweptTo).toBeGreaterThanOrEqual(Number(before));
    // The minute comes to its first age a minute after its end.
    expect(minuteOf(sweptTo - 2 * MINUTE_MS) < parts.oldMinute).toBe(true);

    broken.is = false;
    await parts.clock.advance(MINUTE_MS);
    const startedAt = parts.clock.now();
    await expect(sweep.pass()).resolves.toMatchObject({ published: 1, complete: true });
    expect(state(parts)?.sweptTo).toBe(startedAt);
  });

  test('a row left behind whose pointer cannot be written keeps the state before its minute', async () => {
    const parts = await twoMinutes();
    const before = Number(state(parts)?.sweptTo);
    const leaseUntil = parts.clock.now() + 10 * MINUTE_MS;
    const [row] = parts.rows();
    const key = { PK: row?.PK ?? '', SK: row?.SK ?? '' };
    await parts.memory.updateEach([{ key, set: { leaseUntil }, when: { status: 'PENDING' } }]);
    const { table } = breaking(parts, { write: isPointer });
    await expect(sweeper({ ...parts, table }, SHARDS).pass()).resolves.toMatchObject({
      published: 1,
      complete: false,
    });
    expect(minuteOf(Number(state(parts)?.sweptTo) - 2 * MINUTE_MS) < parts.oldMinute).toBe(true);
    expect(Number(state(parts)?.sweptTo)).toBeGreaterThanOrEqual(before);
  });

  test('a state that cannot be stored ends no pass', async () => {
    const parts = await twoMinutes();
    const before = state(parts)?.sweptTo;
    const isState = (write: Write) => write.Update?.Key?.PK === SWEEP_STATE_KEY.PK;
    const { table } = breaking(parts, { write: isState });
    await expect(sweeper({ ...parts, table }, SHARDS).pass()).resolves.toMatchObject({
      published: 2,
      complete: false,
    });
    expect(state(parts)?.sweptTo).toBe(before);
  });

  test('an unsettled minute that cannot be read keeps its pointer, and those after it have their turn', async () => {
    const parts = await twoMinutes();
    for (const SK of [parts.oldMinute, parts.newMinute])
      await parts.memory.write({ Put: { Item: { PK: 'SWEEP#00', SK, schema: 1, token: SK } } });
    const { table } = breaking(parts, {
      query: ({ pk, consistent }) =>
        pk.startsWith('OUTBOX#') && (!consistent || pk.includes(parts.oldMinute)),
      write: isPointer,
    });
    await expect(sweeper({ ...parts, table }, SHARDS).pass()).resolves.toMatchObject({
      published: 1,
      complete: false,
    });
    expect(parts.publishedIds()).toEqual([parts.newEvent]);
    expect(pointers(parts)).toMatchObject([{ SK: parts.oldMinute }]);
  });

  test('an unsettled minute in which something is left keeps its pointer, also in a pass in which it comes to no age', async () => {
    const parts = rig();
    await parts.outbox.commit({ events: [parts.happened(1)] });
    const [row] = parts.rows();
    const key = { PK: row?.PK ?? '', SK: row?.SK ?? '' };
    const leaseUntil = parts.clock.now() + 10 * MINUTE_MS;
    await parts.memory.updateEach([{ key, set: { leaseUntil }, when: { status: 'PENDING' } }]);
    await parts.clock.advance(2 * MINUTE_MS);
    for (let pass = 1; pass <= 3; pass += 1) {
      await expect(sweeper(parts).pass()).resolves.toMatchObject({ pending: 1 });
      expect(pointers(parts)).toHaveLength(1);
      await parts.clock.advance(40_000);
    }
  });

  test('a pass that has no time left for all of the unsettled minutes is not complete, though nothing failed', async () => {
    const parts = await twoMinutes();
    for (let n = 0; n < 8; n += 1) {
      const pointer = { PK: 'SWEEP#00', SK: `2025-01-01T00:0${n}`, schema: 1, token: `${n}` };
      await parts.memory.write({ Put: { Item: pointer } });
    }
    const { memory, clock } = parts;
    const query: Table['query'] = async (wanted) => {
      if (wanted.consistent) await clock.sleep(15_000);
      return memory.query(wanted);
    };
    const sweep = sweeper({ ...parts, table: { ...memory, query } }, SHARDS);
    await expect(sweep.pass()).resolves.toMatchObject({ published: 2, complete: false });
    expect(parts.telemetry.counted('SweepFailures')).toBe(0);
    expect(pointers(parts).length).toBeGreaterThan(0);
  });

  test('unsettled minutes that never settle do not keep those after them from their turn', async () => {
    const parts = rig();
    const minutes = Array.from({ length: 8 }, (_, n) => `2025-01-01T00:0${n}`);
    for (const SK of minutes) {
      const unreadable = { PK: `OUTBOX#${SK}#00`, SK: 'EVENT#1', schema: 99, status: 'PENDING' };
      await parts.memory.write({ Put: { Item: unreadable } });
      await parts.memory.write({ Put: { Item: { PK: 'SWEEP#00', SK, schema: 1, token: SK } } });
    }
    const { memory, clock } = parts;
    const reached = new Set<string>();
    const query: Table['query'] = async (wanted) => {
      if (wanted.consistent) {
        await clock.sleep(15_000);
        reached.add(wanted.pk);
      }
      return memory.query(wanted);
    };
    const sweep = sweeper({ ...parts, table: { ...memory, query } }, SHARDS);
    for (let pass = 0; pass < minutes.length; pass += 1) await sweep.pass();
    expect([...reached].filter((pk) => pk.startsWith('OUTBOX#2025')).sort()).toEqual(
      minutes.map((minute) => `OUTBOX#${minute}#00`),
    );
    expect(pointers(parts)).toHaveLength(minutes.length);
  });

  test('a minute whose pages do not end before the pass does is unsettled', async () => {
    const parts = await twoMinutes();
    const { memory, clock } = parts;
    const query: Table['query'] = async (wanted) => {
      if (!wanted.pk.includes(parts.oldMinute)) return memory.query(wanted);
      await clock.sleep(1_000);
      return { items: [], cursor: { PK: wanted.pk, SK: 'EVENT#1' } };
    };
    const sweep = sweeper({ ...parts, table: { ...memory, query } }, SHARDS);
    await expect(sweep.pass()).resolves.toMatchObject({ complete: false });
    expect(pointers(parts)).toMatchObject([{ SK: parts.oldMinute }]);
  });

  test('pointers that cannot be listed hold up nothing else', async () => {
    const parts = await twoMinutes();
    const { table } = breaking(parts, { query: ({ pk }) => pk === 'SWEEP#00' });
    await expect(sweeper({ ...parts, table }, SHARDS).pass()).resolves.toMatchObject({
      published: 2,
      complete: false,
    });
  });

  test('DEAD events that cannot be counted are not reported as none', async () => {
    const parts = await twoMinutes();
    const { table } = breaking(parts, { query: ({ pk }) => pk.startsWith('DEAD#') });
    parts.telemetry.gauge('DeadEvents', 7);
    const { dead, ...report } = await sweeper({ ...parts, table }, SHARDS).pass();
    expect(report).toMatchObject({ published: 2, complete: false });
    expect(dead).toBeUndefined();
    expect(parts.telemetry.counted('DeadEvents')).toBe(7);
  });
});
