import { expect, test } from 'vitest';
import { minuteOf } from '../../../lambdas/runtime/event-id.ts';
import { MINUTE_MS } from '../../../lambdas/runtime/relay/sweep-minutes.ts';
import { bench } from '../../support/runtime-bench.ts';
import { pointers, sweeper } from './relay-sweep-rig.ts';

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
