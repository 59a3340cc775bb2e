import { describe, expect, test } from 'vitest';
import { JOINED_MAX, joinedReads, type ReadPartitions } from '../../../cli/deployment/joined-reads.ts';
import type { Item, Query, StorableItem, Table } from '../../../lambdas/runtime/store/table.ts';
import { memoryTable } from '../../../testing/index.ts';

const ROWS = [
  ...Array.from({ length: 120 }, (_, n) => ({
    PK: `P#${n}`,
    SK: 'A#1',
    status: n % 2 === 0 ? 'NEW' : 'OLD',
  })),
  { PK: 'P#0', SK: 'A#3', status: 'NEW', text: 'about sale-7' },
  { PK: 'P#0', SK: 'A#2', status: 'NEW', text: 'about sale-8' },
  { PK: 'P#0', SK: 'B#1', status: 'NEW' },
];

/** A table with rows, the queries and statements made, and a statement that reads all of its partitions. */
async function made(over: { readonly read?: ReadPartitions } = {}) {
  const table = memoryTable();
  for (const Item of ROWS) await table.write({ Put: { Item: Item as StorableItem } });
  const queries: Query[] = [];
  const gets: number[] = [];
  const statements: string[][] = [];
  const counted: Table = {
    ...table,
    query: (query) => {
      queries.push(query);
      return table.query(query);
    },
    getEach: (keys, options) => {
      gets.push(keys.length);
      return table.getEach(keys, options);
    },
  };
  const all: ReadPartitions = async (pks, { skPrefix, where }) => {
    const pages = await Promise.all(pks.map((pk) => table.query({ pk, skPrefix, where })));
    return pages.flatMap(({ items }) => items).reverse();
  };
  const { read = all } = over;
  const joined = joinedReads(counted, (pks, query) => {
    statements.push([...pks]);
    return read(pks, query);
  });
  return { table, joined, queries, gets, statements };
}

const PKS = Array.from({ length: 120 }, (_, n) => `P#${n}`);

describe('joined queries', () => {
  test('return for each partition what a query of it returns', async () => {
    const { table, joined, queries, statements } = await made();
    const variants: readonly Omit<Query, 'pk'>[] = [
      {},
      { skPrefix: 'A#' },
      { skPrefix: 'A#', where: { status: 'NEW' } },
      { limit: 2 },
      { containing: { text: 'sale-7' } },
    ];
    for (const variant of variants) {
      const found = await Promise.all(PKS.map((pk) => joined.query({ pk, ...variant })));
      const alone = await Promise.all(PKS.map((pk) => table.query({ pk, ...variant })));
      expect(found.map(({ items }) => items)).toEqual(alone.map(({ items }) => items));
    }
    expect(queries).toEqual([]);
    expect(statements.map((pks) => pks.length)).toEqual(variants.flatMap(() => [50, 50, 20]));
    expect(Math.max(...statements.map((pks) => pks.length))).toBe(JOINED_MAX);
  });

  test('continue at a cursor with a query of the partition', async () => {
    const { joined, queries } = await made();
    const [first] = await Promise.all(['P#0', 'P#1'].map((pk) => joined.query({ pk, limit: 3 })));
    expect(first?.items.map(({ SK }) => SK)).toEqual(['A#1', 'A#2', 'A#3']);
    const rest = await joined.query({ pk: 'P#0', limit: 3, cursor: first?.cursor });
    expect(rest.items.map(({ SK }) => SK)).toEqual(['B#1']);
    expect(queries).toHaveLength(1);
  });

  test('are made one by one if they could not be read together', async () => {
    const { joined, queries } = await made({ read: async () => undefined });
    const found = await Promise.all(PKS.map((pk) => joined.query({ pk })));
    expect(found.flatMap(({ items }) => items)).toHaveLength(ROWS.length);
    expect(queries).toHaveLength(PKS.length);
  });

  test('of which one differs in more than its partition are not joined with the others', async () => {
    const { joined, statements, queries } = await made();
    await Promise.all([
      joined.query({ pk: 'P#0' }),
      joined.query({ pk: 'P#1' }),
      joined.query({ pk: 'P#2', skPrefix: 'B#' }),
      joined.query({ pk: 'P#3', consistent: true }),
    ]);
    expect(statements).toEqual([['P#0', 'P#1']]);
    expect(queries.map(({ pk }) => pk).sort()).toEqual(['P#2', 'P#3']);
  });

  test('fail together, and the next ones are read', async () => {
    let fails = true;
    const failing: ReadPartitions = async () => {
      if (fails) throw new Error('Throttled');
      return [];
    };
    const { joined } = await made({ read: failing });
    const both = () => Promise.allSettled(['P#0', 'P#1'].map((pk) => joined.query({ pk })));
    expect((await both()).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    fails = false;
    expect((await both()).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled']);
  });
});

test('concurrent reads of items are joined into batches of 100, and each key is read once', async () => {
  const { joined, gets } = await made();
  const keyOf = (n: number) => ({ PK: `P#${n}`, SK: 'A#1' });
  const calls = [...Array(120).keys(), 5, 7].map((n) =>
    joined.getEach([keyOf(n), { PK: 'none', SK: `${n}` }]),
  );
  const found: (Item | undefined)[][] = await Promise.all(calls);
  expect(found[5]).toEqual([expect.objectContaining({ PK: 'P#5' }), undefined]);
  expect(found.map(([item]) => item?.PK)).toEqual([...PKS, 'P#5', 'P#7']);
  expect(gets).toEqual([100, 100, 40]);
});
