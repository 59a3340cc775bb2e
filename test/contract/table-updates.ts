import { expect } from 'vitest';
import type { Item, Table } from '../../lambdas/runtime/store/table.ts';
import type { Case } from './cases.ts';

interface UpdateRow {
  readonly title: string;
  /** The item before, without its key. `undefined`: there is none. */
  readonly before: Item | undefined;
  readonly update: string;
  readonly values?: Item;
  readonly names?: Record<string, string>;
  /** The item after, without its key. */
  readonly after: Item;
}

const ROWS: readonly UpdateRow[] = [
  {
    title: 'SET writes and overwrites',
    before: { a: 1, keep: 'x' },
    update: 'SET a = :a, b = :b',
    values: { ':a': 2, ':b': { deep: [1] } },
    after: { a: 2, b: { deep: [1] }, keep: 'x' },
  },
  {
    title: 'SET makes an item that is not there',
    before: undefined,
    update: 'SET a = :a',
    values: { ':a': 1 },
    after: { a: 1 },
  },
  {
    title: 'REMOVE alone makes an item of just its key',
    before: undefined,
    update: 'REMOVE a',
    after: {},
  },
  {
    title: 'SET adds and subtracts',
    before: { a: 5, b: 5 },
    update: 'SET a = a + :n, b = b - :n, c = :n - a',
    values: { ':n': 2 },
    after: { a: 7, b: 3, c: -3 },
  },
  {
    title: 'sums are decimal: 0.1 + 0.2 is 0.3',
    before: { a: 0.1 },
    update: 'SET a = a + :n',
    values: { ':n': 0.2 },
    after: { a: 0.3 },
  },
  {
    title: 'SET sees the item as it was',
    before: { a: 1, b: 2 },
    update: 'SET a = b, b = a',
    after: { a: 2, b: 1 },
  },
  {
    title: 'if_not_exists keeps what is there and else takes the default',
    before: { a: 1 },
    update: 'SET a = if_not_exists(a, :z), b = if_not_exists(b, :z) + :n, c = if_not_exists(b, a)',
    values: { ':z': 0, ':n': 1 },
    after: { a: 1, b: 1, c: 1 },
  },
  {
    title: 'list_append joins at either end',
    before: { a: [1], b: [1] },
    update: 'SET a = list_append(a, :l), b = list_append(:l, b), c = list_append(if_not_exists(c, :e), :l)',
    values: { ':l': [2], ':e': [] },
    after: { a: [1, 2], b: [2, 1], c: [2] },
  },
  {
    title: 'SET reaches into maps and lists, and appends past the end of a list',
    before: { home: { city: 'Oslo' }, entries: ['a', 'b'] },
    update: 'SET home.#street = :s, entries[0] = :s, entries[9] = :s',
    values: { ':s': 'x' },
    names: { '#street': 'street.name' },
    after: { home: { city: 'Oslo', 'street.name': 'x' }, entries: ['x', 'b', 'x'] },
  },
  {
    title: 'REMOVE takes attributes, map entries and list elements, by the indexes as they were',
    before: { a: 1, tree: { x: 1, y: 2 }, entries: ['a', 'b', 'c', 'd'], keep: 1 },
    update: 'REMOVE a, tree.x, entries[0], entries[2], absent',
    after: { tree: { y: 2 }, entries: ['b', 'd'], keep: 1 },
  },
  {
    title: 'ADD counts, from nothing too',
    before: { a: 5 },
    update: 'ADD a :n, b :n',
    values: { ':n': -2 },
    after: { a: 3, b: -2 },
  },
  {
    title: 'ADD unites sets, from nothing too',
    before: { tags: new Set(['a', 'b']), primes: new Set([2]) },
    update: 'ADD tags :t, primes :p, fresh :t',
    values: { ':t': new Set(['b', 'c']), ':p': new Set([3]) },
    after: { tags: new Set(['a', 'b', 'c']), primes: new Set([2, 3]), fresh: new Set(['b', 'c']) },
  },
  {
    title: 'DELETE takes elements from a set, and an emptied set with it',
    before: { tags: new Set(['a', 'b']), lone: new Set(['a']) },
    update: 'DELETE tags :t, lone :t, absent :t',
    values: { ':t': new Set(['a', 'z']) },
    after: { tags: new Set(['b']) },
  },
  {
    title: 'all four sections together, in any order and case',
    before: { a: 1, b: 2, c: 3, d: new Set(['x', 'y']) },
    update: 'remove a add b :n set c = :n delete d :x',
    values: { ':n': 10, ':x': new Set(['x']) },
    after: { b: 12, c: 10, d: new Set(['y']) },
  },
  {
    title: 'values that are undefined are not stored',
    before: { a: 1 },
    update: 'SET a = :a',
    values: { ':a': { kept: 1, dropped: undefined } },
    after: { a: { kept: 1 } },
  },
  {
    title: 'every type survives the way',
    before: undefined,
    update: 'SET a = :a',
    values: {
      ':a': {
        text: 'żółw 🐢',
        empty: '',
        numbers: [0, -1, 1.5, 1_800_000_000_000, 1e-7],
        yes: true,
        none: null,
        bytes: new Uint8Array([0, 255]),
        tags: new Set(['a']),
        tree: {},
        entries: [],
      },
    },
    after: {
      a: {
        text: 'żółw 🐢',
        empty: '',
        numbers: [0, -1, 1.5, 1_800_000_000_000, 1e-7],
        yes: true,
        none: null,
        bytes: new Uint8Array([0, 255]),
        tags: new Set(['a']),
        tree: {},
        entries: [],
      },
    },
  },
];

/** Every form of an update. */
export const updateCases: readonly Case<Table>[] = ROWS.map(
  ({ title, before, update, values, names, after }, index) => [
    title,
    async (table) => {
      const Key = { PK: `UPDATE#${index}`, SK: 'ITEM' };
      if (before) await table.write({ Put: { Item: { ...Key, ...before } } });
      const returned = await table.write({
        Update: {
          Key,
          UpdateExpression: update,
          ExpressionAttributeNames: names,
          ExpressionAttributeValues: values,
        },
      });
      expect(returned).toEqual({ ...Key, ...after });
      expect(await table.get(Key, { consistent: true })).toEqual({ ...Key, ...after });
    },
  ],
);
