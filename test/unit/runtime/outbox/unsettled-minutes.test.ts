import { expect, test } from 'vitest';
import { MINUTE_MS } from '../../../../lambdas/runtime/base/units.ts';
import { minuteOf } from '../../../../lambdas/runtime/store/event-id.ts';
import { SWEEP_STATE_KEY } from '../../../../lambdas/runtime/store/keys.ts';
import { rig } from '../../../support/runtime-rig.ts';
import { pointers, sweeper } from '../relay/relay-sweep-rig.ts';

test('a row under a lease is left, and its minute is unsettled until it is clean', async () => {
  const parts = rig();
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

test.each([
  ['a token', { token: 'old' }],
  ['no token, as put by hand', {}],
])('an unsettled pointer with %s that was put again is not removed', async (_what, old) => {
  const parts = rig();
  const key = { PK: 'SWEEP#00', SK: '2025-12-31T23:00' };
  await parts.memory.write({ Put: { Item: { ...key, schema: 1, ...old } } });
  const table = {
    ...parts.memory,
    query: async (query: Parameters<typeof parts.memory.query>[0]) => {
      const page = await parts.memory.query(query);
      if (query.consistent) await parts.memory.write({ Put: { Item: { ...key, schema: 1, token: 'new' } } });
      return page;
    },
  };
  await sweeper({ ...parts, table }).pass();
  expect(pointers(parts)).toMatchObject([{ token: 'new' }]);
  await sweeper(parts).pass();
  expect(pointers(parts)).toEqual([]);
});

test('every page of a minute, of the pointers and of the DEAD events is read', async () => {
  let refused = true;
  const parts = rig({
    bus: { failEntry: () => (refused ? { code: 'InvalidArgument', message: 'no' } : undefined) },
    wrap: (memory) => ({ ...memory, query: (query) => memory.query({ limit: 1, ...query }) }),
  });
  const sweep = sweeper(parts);
  const commitTen = () =>
    parts.outbox.commit({ events: Array.from({ length: 10 }, (_, n) => parts.happened(n)) });
  await commitTen();
  await parts.clock.advance(2 * MINUTE_MS);
  await expect(sweep.pass()).resolves.toMatchObject({ dead: 10 });
  refused = false;
  await commitTen();
  for (const minute of [10, 11, 12, 13])
    for (const shard of [0, 1])
      await parts.memory.write({
        Put: { Item: { PK: `SWEEP#0${shard}`, SK: `2025-12-31T23:${minute}`, schema: 1 } },
      });
  await parts.clock.advance(2 * MINUTE_MS);
  await expect(sweep.pass()).resolves.toMatchObject({ published: 10, dead: 10 });
  expect(pointers(parts)).toEqual([]);
});

test('a pass that cannot read an unsettled minute is not complete', async () => {
  const parts = rig();
  const pointer = { PK: 'SWEEP#00', SK: '2025-12-31T23:00', schema: 1, token: 'one' };
  await parts.memory.write({ Put: { Item: pointer } });
  const table = {
    ...parts.memory,
    query: async (query: Parameters<typeof parts.memory.query>[0]) => {
      if (query.consistent) throw new Error('ProvisionedThroughputExceeded');
      return parts.memory.query(query);
    },
  };
  await expect(sweeper({ ...parts, table }).pass()).resolves.toMatchObject({ complete: false });
  expect(pointers(parts)).toEqual([pointer]);
});

test('unsettled minutes are read even when a pass has no time for its whole backlog', async () => {
  const parts = rig();
  await parts.outbox.commit({ events: [parts.happened(1)] });
  const [row] = parts.rows();
  const [, SK, shard] = row?.PK.split('#') ?? [];
  await parts.memory.write({ Put: { Item: { PK: `SWEEP#${shard}`, SK, schema: 1, token: 'one' } } });
  // The backlog of two days does not contain the minute of the event.
  const sweptTo = parts.clock.now() + 3 * 1024 * MINUTE_MS;
  await parts.memory.write({ Put: { Item: { ...SWEEP_STATE_KEY, schema: 1, shards: 2, sweptTo } } });
  await parts.clock.advance(6 * 1024 * MINUTE_MS);
  const slow = {
    ...parts.memory,
    query: async (query: Parameters<typeof parts.memory.query>[0]) => {
      if (query.pk.startsWith('OUTBOX#')) await parts.clock.sleep(500);
      return parts.memory.query(query);
    },
  };
  await expect(sweeper({ ...parts, table: slow }).pass()).resolves.toMatchObject({
    published: 1,
    complete: false,
  });
});

test('a row that was published but could not be marked keeps its minute unsettled', async () => {
  const parts = rig();
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
