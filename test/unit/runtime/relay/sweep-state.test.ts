import { expect, test } from 'vitest';
import { MINUTE_MS } from '../../../../lambdas/runtime/base/units.ts';
import { createSweepPass } from '../../../../lambdas/runtime/relay/relay-sweep.ts';
import { moveSweptTo, startSweep } from '../../../../lambdas/runtime/relay/sweep-state.ts';
import { SWEEP_STATE_KEY } from '../../../../lambdas/runtime/store/keys.ts';
import { relayConfig, rig, runThrough } from '../../../support/runtime-rig.ts';
import { breaking, isPointer, pointers, state, sweeper } from './relay-sweep-rig.ts';

test('without a state the sweep reads from the table’s creation', async () => {
  const parts = rig();
  await parts.outbox.commit({ events: [parts.happened(1)] });
  await parts.clock.advance(86_400_000);
  await expect(sweeper(parts).pass()).resolves.toMatchObject({ published: 1, complete: true });
  expect(state(parts)).toMatchObject({ shards: 2, schema: 1 });
});

test('the state is the time that the pass started with, and moves only past what was read or has a pointer', async () => {
  const parts = rig();
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
  const { broken: pointersToo, table } = breaking({ ...parts, memory: broken }, { write: isPointer });
  await expect(sweeper({ ...parts, table }).pass()).resolves.toMatchObject({ complete: false });
  expect(state(parts)?.sweptTo).toBe(startedAt);

  pointersToo.is = false;
  const startedAgainAt = parts.clock.now();
  await expect(sweeper({ ...parts, table }).pass()).resolves.toMatchObject({ complete: false });
  expect(state(parts)?.sweptTo).toBe(startedAgainAt);
  expect(pointers(parts).length).toBeGreaterThan(0);
});

test('a state in the future is a wrong clock’s: the last 1024 minutes are read, and it is put right', async () => {
  const parts = rig();
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
  const parts = rig();
  await sweeper(parts, { shards: 3 }).pass();
  await sweeper(parts, { shards: 4 }).pass();
  expect(state(parts)).toMatchObject({ shards: 4 });
  const item = { schema: 1, token: 't' };
  await parts.memory.write({ Put: { Item: { PK: 'SWEEP#03', SK: '2025-12-31T23:00', ...item } } });
  await sweeper(parts, { shards: 2 }).pass();
  expect(state(parts)).toMatchObject({ shards: 4 });
  expect(pointers(parts)).toEqual([]); // also the pointer in a shard that is not written to any more
});

test('a long pass that does not come to its end goes on where it stopped', async () => {
  const parts = rig();
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

test('a pass that runs out of time leaves its range to the next one', async () => {
  const parts = rig();
  await parts.outbox.commit({ events: [parts.happened(1)] });
  await parts.clock.advance(2 * MINUTE_MS);
  const { table, bus, clock, telemetry } = parts;
  const sweep = createSweepPass({ config: relayConfig, table, bus, clock, telemetry });
  await expect(runThrough(clock, sweep(clock.now() + 5_000))).resolves.toMatchObject({
    published: 0,
    complete: false,
  });
  expect(state(parts)?.sweptTo).toBeUndefined();
  await expect(sweeper(parts).pass()).resolves.toMatchObject({ published: 1 });
});

test('a pass overtaken by another does not move the state back', async () => {
  const parts = rig();
  const deps = { ...parts, config: relayConfig };
  const first = parts.clock.now();
  const slow = await startSweep(deps, first);
  await parts.clock.advance(MINUTE_MS);
  await moveSweptTo(deps, await startSweep(deps, parts.clock.now()), parts.clock.now());
  await moveSweptTo(deps, slow, first);
  expect(state(parts)?.sweptTo).toBe(first + MINUTE_MS);
});

test('a state in the future is corrected only if it is the one that the pass read', async () => {
  const parts = rig();
  const item = (sweptTo: number) => ({
    Put: { Item: { ...SWEEP_STATE_KEY, schema: 1, shards: 2, sweptTo } },
  });
  const now = parts.clock.now();
  await parts.memory.write(item(now + 10 * MINUTE_MS));
  const pass = await startSweep({ ...parts, config: relayConfig }, now);
  await parts.memory.write(item(now + 20 * MINUTE_MS));
  await moveSweptTo(parts, pass, now);
  expect(state(parts)?.sweptTo).toBe(now + 20 * MINUTE_MS);
});

test('a higher number of shards that another sweep has stored in between is kept and used', async () => {
  const parts = rig();
  await parts.memory.write({ Put: { Item: { ...SWEEP_STATE_KEY, schema: 1, shards: 8 } } });
  const table = { ...parts.memory, get: async () => undefined };
  const { shards } = await startSweep({ ...parts, table, config: relayConfig }, parts.clock.now());
  expect(shards).toBe(8);
  expect(state(parts)).toMatchObject({ shards: 8 });
});

test('a state with values of the wrong type is overwritten', async () => {
  const parts = rig();
  const now = parts.clock.now();
  await parts.memory.write({
    Put: { Item: { ...SWEEP_STATE_KEY, schema: 1, sweptTo: 'yesterday', shards: 'many' } },
  });
  const start = await startSweep({ ...parts, config: relayConfig }, now);
  await moveSweptTo(parts, start, now);
  expect(start.shards).toBe(2);
  expect(state(parts)).toMatchObject({ sweptTo: now, shards: 2 });
});
