import { expect } from 'vitest';
import { GET_EACH_REQUEST_MAX, type Table } from '../../lambdas/runtime/store/table.ts';
import type { Case } from './cases.ts';

/** Reads of several items at once. */
export const getEachCases: readonly Case<Table>[] = [
  [
    'getEach returns an item for each key, in order: absent ones too, and repeated ones',
    async (table) => {
      const item = { PK: 'GET_EACH#1', SK: 'a', data: { n: [1] }, tags: new Set(['x']) };
      const other = { PK: 'GET_EACH#2', SK: 'a', n: 2 };
      await table.write({ Put: { Item: item } });
      await table.write({ Put: { Item: other } });
      const keys = [
        { PK: 'GET_EACH#2', SK: 'a' },
        { PK: 'GET_EACH#1', SK: 'absent' },
        { PK: 'GET_EACH#1', SK: 'a' },
        { PK: 'GET_EACH#2', SK: 'a' },
      ];
      expect(await table.getEach(keys, { consistent: true })).toEqual([other, undefined, item, other]);
    },
  ],
  [
    'getEach reads more keys than one request may have, and nothing for none',
    async (table) => {
      const PK = 'GET_EACH#3';
      const nth = [...Array(2 * GET_EACH_REQUEST_MAX + 1).keys()];
      const written = [0, GET_EACH_REQUEST_MAX - 1, GET_EACH_REQUEST_MAX, nth.length - 1];
      for (const n of written) await table.write({ Put: { Item: { PK, SK: `${n}`, n } } });
      const keys = nth.map((n) => ({ PK, SK: `${n}` }));
      const found = await table.getEach(keys, { consistent: true });
      expect(found).toEqual(nth.map((n) => (written.includes(n) ? { PK, SK: `${n}`, n } : undefined)));
      expect(await table.getEach([])).toEqual([]);
    },
  ],
  [
    'getEach refuses an empty key',
    async (table) => {
      const keys = [
        { PK: 'GET_EACH#4', SK: 'a' },
        { PK: 'GET_EACH#4', SK: '' },
      ];
      await expect(table.getEach(keys)).rejects.toMatchObject({ name: 'ValidationException' });
    },
  ],
];
