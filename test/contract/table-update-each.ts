import { expect } from 'vitest';
import {
  type EachUpdate,
  type Item,
  type Table,
  UPDATE_EACH_MAX,
} from '../../lambdas/runtime/store/table.ts';
import type { Case } from './cases.ts';

/** Batches of independent conditional updates. */
export const updateEachCases: readonly Case<Table>[] = [
  [
    'updateEach answers for each: done, refused with its row, refused without',
    async (table) => {
      const PK = 'EACH#1';
      await put(table, PK, 'pending', { status: 'PENDING', leaseUntil: 1, lastError: 'x', data: { a: [1] } });
      await put(table, PK, 'dead', { status: 'DEAD', leaseUntil: 1, tags: new Set(['a']) });
      const mark = (SK: string): EachUpdate => ({
        key: { PK, SK },
        set: { status: 'PUBLISHED', publishedAt: 5, expiresAt: 9 },
        remove: ['lastError', 'missing'],
        when: { status: 'PENDING' },
      });
      expect(await table.updateEach([mark('dead'), mark('pending'), mark('absent')])).toEqual([
        {
          ok: false,
          refused: true,
          item: { PK, SK: 'dead', status: 'DEAD', leaseUntil: 1, tags: new Set(['a']) },
        },
        { ok: true },
        { ok: false, refused: true },
      ]);
      expect(await table.get({ PK, SK: 'pending' }, { consistent: true })).toEqual({
        PK,
        SK: 'pending',
        status: 'PUBLISHED',
        leaseUntil: 1,
        publishedAt: 5,
        expiresAt: 9,
        data: { a: [1] },
      });
      expect(await table.get({ PK, SK: 'absent' }, { consistent: true })).toBeUndefined();
    },
  ],
  [
    'updateEach compares several attributes, by type and value',
    async (table) => {
      const PK = 'EACH#2';
      await put(table, PK, 'row', { status: 'PENDING', leaseUntil: 1_800_000_000_000, flag: true });
      const claim = (when: Item): EachUpdate => ({ key: { PK, SK: 'row' }, set: { claimed: 1 }, when });
      const refused = { ok: false, refused: true };
      const refusals = [
        { status: 'PENDING', leaseUntil: 1_800_000_000_001, flag: true },
        { status: 'PENDING', leaseUntil: '1800000000000', flag: true },
        { status: 'PENDING', leaseUntil: 1_800_000_000_000, flag: false },
        { status: 'PENDING', missing: 1 },
      ];
      for (const when of refusals) expect(await table.updateEach([claim(when)])).toMatchObject([refused]);
      const when = { status: 'PENDING', leaseUntil: 1_800_000_000_000, flag: true };
      expect(await table.updateEach([claim(when)])).toEqual([{ ok: true }]);
    },
  ],
  [
    'updateEach without a condition still makes no item',
    async (table) => {
      const PK = 'EACH#3';
      await put(table, PK, 'there', {});
      const set = { a: { deep: ['x', null, true] } };
      const update = (SK: string): EachUpdate => ({ key: { PK, SK }, set, when: {} });
      expect(await table.updateEach([update('there'), update('absent')])).toEqual([
        { ok: true },
        { ok: false, refused: true },
      ]);
      expect(await table.get({ PK, SK: 'there' }, { consistent: true })).toEqual({ PK, SK: 'there', ...set });
      expect(await table.get({ PK, SK: 'absent' }, { consistent: true })).toBeUndefined();
    },
  ],
  [
    'updateEach takes any attribute name, reserved or odd',
    async (table) => {
      const PK = 'EACH#4';
      const odd = { 'a.b': 1, 'with space': 2, select: 3, "it's": 4, Größe: 5 };
      await put(table, PK, 'row', odd);
      const update = { key: { PK, SK: 'row' }, set: { ...odd, value: 6 }, remove: ['set'], when: odd };
      expect(await table.updateEach([update])).toEqual([{ ok: true }]);
      expect(await table.get({ PK, SK: 'row' }, { consistent: true })).toEqual({
        PK,
        SK: 'row',
        ...odd,
        value: 6,
      });
    },
  ],
  [
    'updateEach makes 25 updates in one call, and none of none',
    async (table) => {
      const PK = 'EACH#5';
      const sks = Array.from({ length: UPDATE_EACH_MAX }, (_, n) => String(n).padStart(2, '0'));
      await Promise.all(sks.map((SK) => put(table, PK, SK, { n: 0 })));
      const updates = sks.map((SK, n) => ({ key: { PK, SK }, set: { n }, when: { n: 0 } }));
      expect(await table.updateEach(updates)).toEqual(sks.map(() => ({ ok: true })));
      const { items } = await table.query({ pk: PK, consistent: true });
      expect(items.map((item) => item.n)).toEqual(sks.map((_, n) => n));
      expect(await table.updateEach([])).toEqual([]);
    },
  ],
  [
    'updateEach: a row that grows too large fails alone',
    async (table) => {
      const PK = 'EACH#6';
      await put(table, PK, 'large', { blob: 'x'.repeat(300_000) });
      await put(table, PK, 'small', {});
      const more = { more: 'x'.repeat(200_000) };
      const results = await table.updateEach([
        { key: { PK, SK: 'large' }, set: more, when: {} },
        { key: { PK, SK: 'small' }, set: more, when: {} },
      ]);
      expect(results).toEqual([
        { ok: false, refused: false, code: 'ValidationError', message: expect.any(String) },
        { ok: true },
      ]);
    },
  ],
  [
    'refused: updates that could not mean what they say',
    async (table) => {
      const key = { PK: 'EACH#7', SK: 'row' };
      const good: EachUpdate = { key, set: { a: 1 }, when: {} };
      const bad: readonly (readonly EachUpdate[])[] = [
        [{ ...good, set: {} }],
        [{ ...good, set: { a: undefined } }],
        [{ ...good, when: { a: undefined } }],
        [{ ...good, when: { a: null } }],
        [{ ...good, when: { a: new Set(['x']) } }],
        [{ ...good, set: { SK: 'other' } }],
        [{ ...good, remove: ['PK'] }],
        [{ ...good, remove: ['a'] }],
        [{ ...good, set: { 'a"b': 1 } }],
        [{ ...good, key: { PK: 'EACH#7', SK: '' } }],
        [good, good],
        Array.from({ length: UPDATE_EACH_MAX + 1 }, (_, n) => ({
          ...good,
          key: { PK: 'EACH#7', SK: String(n) },
        })),
      ];
      for (const updates of bad) {
        await expect(table.updateEach(updates)).rejects.toMatchObject({ code: 'BAD_UPDATE' });
      }
    },
  ],
];

async function put(table: Table, PK: string, SK: string, rest: Item): Promise<void> {
  await table.write({ Put: { Item: { PK, SK, ...rest } } });
}
