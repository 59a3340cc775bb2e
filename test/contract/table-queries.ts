import { expect } from 'vitest';
import type { Item, Query, Table } from '../../lambdas/runtime/store/table.ts';
import type { Case } from './cases.ts';

const REFUSED: readonly (readonly [title: string, query: Query, error: object])[] = [
  ['a query of an empty partition key', { pk: '' }, { name: 'ValidationException' }],
  ['a query with a limit of 0', { pk: 'QUERY#8', limit: 0 }, { name: 'ValidationException' }],
  ['a filter on a key', { pk: 'QUERY#8', where: { SK: 'x' } }, { name: 'ValidationException' }],
  ['a filter with undefined', { pk: 'QUERY#8', where: { a: undefined } }, { code: 'BAD_QUERY' }],
];

/** Reads of a partition. */
export const queryCases: readonly Case<Table>[] = [
  [
    'a query reads one partition in the byte order of the sort keys',
    async (table) => {
      const sks = ['b', 'a', 'ab', 'Z', '0', 'é', '😀', '\uFF5E', 'a#1'];
      await fill(table, 'QUERY#1', sks);
      await fill(table, 'QUERY#1-other', ['x']);
      const { items, cursor } = await table.query({ pk: 'QUERY#1', consistent: true });
      expect(items.map((item) => item.SK)).toEqual(['0', 'Z', 'a', 'a#1', 'ab', 'b', 'é', '\uFF5E', '😀']);
      expect(cursor).toBeUndefined();
    },
  ],
  [
    'an empty partition has no items',
    async (table) => {
      expect(await table.query({ pk: 'QUERY#none', consistent: true })).toEqual({ items: [] });
    },
  ],
  [
    'a prefix picks the sort keys that begin with it',
    async (table) => {
      await fill(table, 'QUERY#2', ['EVENT#1', 'EVENT#2', 'EVENTS', 'MESSAGE']);
      const { items } = await table.query({ pk: 'QUERY#2', skPrefix: 'EVENT#', consistent: true });
      expect(items.map((item) => item.SK)).toEqual(['EVENT#1', 'EVENT#2']);
    },
  ],
  [
    'where picks items by the values of their attributes, reserved words and types included',
    async (table) => {
      await fill(table, 'QUERY#3', ['1', '2', '3', '4'], (sk) => ({
        status: sk === '3' ? 'DEAD' : 'PENDING',
        flag: sk !== '4',
        n: sk === '2' ? '1' : 1,
      }));
      const where = { status: 'PENDING', flag: true, n: 1 };
      const { items } = await table.query({ pk: 'QUERY#3', where, consistent: true });
      expect(items.map((item) => item.SK)).toEqual(['1']);
      expect((await table.query({ pk: 'QUERY#3', where: { missing: 1 }, consistent: true })).items).toEqual(
        [],
      );
      expect((await table.query({ pk: 'QUERY#3', where: {}, consistent: true })).items).toHaveLength(4);
    },
  ],
  [
    'containing leaves out the items whose text does not contain it, and no item without such a text',
    async (table) => {
      const values: Record<string, Item> = {
        1: { status: 'an order-7 here' },
        2: { status: 'order-8' },
        3: { status: new Uint8Array([1]) },
        4: {},
        5: { status: 'order-7', kind: 'other' },
      };
      await fill(table, 'QUERY#10', Object.keys(values), (sk) => ({ kind: 'one', ...values[sk] }));
      const query = { pk: 'QUERY#10', where: { kind: 'one' }, containing: { status: 'order-7' } };
      expect(await sortKeys(table, query)).toEqual(['1', '3', '4']);
    },
  ],
  [
    'limit and cursor walk a partition page by page',
    async (table) => {
      await fill(table, 'QUERY#4', ['1', '2', '3', '4', '5']);
      const first = await table.query({ pk: 'QUERY#4', limit: 2, consistent: true });
      expect(first.items.map((item) => item.SK)).toEqual(['1', '2']);
      const second = await table.query({ pk: 'QUERY#4', limit: 2, cursor: first.cursor, consistent: true });
      expect(second.items.map((item) => item.SK)).toEqual(['3', '4']);
      expect(await sortKeys(table, { pk: 'QUERY#4', limit: 2 })).toEqual(['1', '2', '3', '4', '5']);
    },
  ],
  [
    'a cursor stays good when its item is deleted',
    async (table) => {
      await fill(table, 'QUERY#5', ['1', '2', '3']);
      const { cursor } = await table.query({ pk: 'QUERY#5', limit: 2, consistent: true });
      await table.write({ Delete: { Key: { PK: 'QUERY#5', SK: '2' } } });
      const rest = await table.query({ pk: 'QUERY#5', cursor, consistent: true });
      expect(rest.items.map((item) => item.SK)).toEqual(['3']);
    },
  ],
  [
    'the limit counts what is read, before where',
    async (table) => {
      await fill(table, 'QUERY#6', ['1', '2', '3'], (sk) => ({ odd: sk !== '2' }));
      const page = await table.query({ pk: 'QUERY#6', limit: 2, where: { odd: true }, consistent: true });
      expect(page.items.map((item) => item.SK)).toEqual(['1']);
      expect(page.cursor).toBeDefined();
      const all = await sortKeys(table, { pk: 'QUERY#6', limit: 1, where: { odd: true } });
      expect(all).toEqual(['1', '3']);
    },
  ],
  [
    'a page ends at 1 MB',
    async (table) => {
      await fill(table, 'QUERY#7', ['1', '2', '3', '4'], () => ({ blob: 'x'.repeat(350_000) }));
      const page = await table.query({ pk: 'QUERY#7', consistent: true });
      expect(page.items.length).toBeLessThan(4);
      expect(page.cursor).toBeDefined();
      expect(await sortKeys(table, { pk: 'QUERY#7' })).toEqual(['1', '2', '3', '4']);
    },
  ],
  ...REFUSED.map(
    ([title, query, error]): Case<Table> => [
      `refused: ${title}`,
      async (table) => {
        await expect(table.query(query)).rejects.toMatchObject(error);
      },
    ],
  ),
];

async function fill(
  table: Table,
  PK: string,
  sks: readonly string[],
  rest = (_: string): Item => ({}),
): Promise<void> {
  await Promise.all(sks.map((SK) => table.write({ Put: { Item: { PK, SK, ...rest(SK) } } })));
}

async function sortKeys(table: Table, query: Query): Promise<unknown[]> {
  const found: unknown[] = [];
  for (let cursor: Item | undefined, more = true; more; more = cursor !== undefined) {
    const page = await table.query({ ...query, consistent: true, cursor });
    found.push(...page.items.map((item) => item.SK));
    cursor = page.cursor;
  }
  return found;
}
