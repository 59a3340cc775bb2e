import { expect, test } from 'vitest';
import { dynamoRows } from '../../../../../cli/deployment/dynamo-rows.ts';
import { createEarlierEvents } from '../../../../../cli/page/server/event-feed.ts';
import { HOUR_MS } from '../../../../../lambdas/runtime/base/units.ts';
import { EVENT_PREFIX } from '../../../../../lambdas/runtime/store/keys.ts';
import type { Query, Table } from '../../../../../lambdas/runtime/store/table.ts';
import { manualClock, memoryTable } from '../../../../../testing/index.ts';

const SHARDS = [0, 1];

/** A search in a table whose queries each take a time. */
function search(queryMs = 0) {
  const clock = manualClock();
  const queries: Query[] = [];
  const table: Table = {
    ...memoryTable(),
    query: async (query) => {
      queries.push(query);
      await clock.advance(queryMs);
      return { items: [] };
    },
  };
  const earlier = createEarlierEvents({ stored: dynamoRows(table), shards: SHARDS, clock }, clock.now());
  return { clock, queries, earlier };
}

test('a search for earlier events reads one row of each minute and shard of 6 hours, and ends', async () => {
  const { clock, queries, earlier } = search();
  const startedAt = clock.now();
  expect(await earlier.read(50)).toEqual([]);
  expect(earlier.isOver()).toBe(true);
  expect(earlier.since()).toBe(startedAt + 60_000 - 6 * HOUR_MS);
  expect(queries).toHaveLength(6 * 60 * SHARDS.length);
  expect(new Set(queries.map(({ pk }) => pk)).size).toBe(queries.length);
  for (const query of queries) expect(query).toMatchObject({ skPrefix: EVENT_PREFIX, limit: 1 });
});

test('a slow search for earlier events returns after each quarter of an hour, and goes on from there', async () => {
  const { queries, earlier } = search(1_000);
  const since: number[] = [];
  while (!earlier.isOver()) {
    await earlier.read(50);
    since.push(earlier.since());
  }
  expect(since).toHaveLength(24);
  expect(new Set(since).size).toBe(24);
  expect(queries).toHaveLength(6 * 60 * SHARDS.length);
});
