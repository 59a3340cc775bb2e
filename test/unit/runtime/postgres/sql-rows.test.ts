import { describe, expect, test } from 'vitest';
import type { Sql } from '../../../../lambdas/runtime/store/postgres/sql.ts';
import { readJsonRows, readOneRow, readRows } from '../../../../lambdas/runtime/store/postgres/sql-rows.ts';

/** A database whose adapter returns this result. */
function returning(result: unknown): Sql {
  return { adapter: 'kysely', query: async () => result as Awaited<ReturnType<Sql['query']>> };
}

const COLUMNS = {
  event_id: 'text',
  trace_id: 'text?',
  attempts: 'number',
  due: 'number?',
  held: 'boolean',
} as const;

const ROW = { event_id: '{"a":1}', trace_id: null, attempts: '3', due: null, held: 'false' };

test('reads columns that are text', async () => {
  const rows = await readRows(returning({ rows: [{ ...ROW, more: 1 }] }), '', [], COLUMNS);
  expect(rows).toEqual([{ event_id: '{"a":1}', attempts: 3, held: false }]);
});

const REFUSED: Readonly<Record<string, readonly [unknown, RegExp]>> = {
  'renamed columns': [
    { rows: [{ eventId: 'a', traceId: null }] },
    /kysely returned no column event_id, but eventId, traceId/,
  ],
  'parsed JSON': [{ rows: [{ ...ROW, event_id: { a: 1 } }] }, /column event_id as object, not as text/],
  NULL: [{ rows: [{ ...ROW, event_id: null }] }, /column event_id as NULL/],
  'a number': [{ rows: [{ ...ROW, attempts: 3 }] }, /column attempts as number/],
  'text that is not a number': [{ rows: [{ ...ROW, attempts: '' }] }, /column attempts not as a number/],
  'text that is not true or false': [{ rows: [{ ...ROW, held: 't' }] }, /column held not as true or false/],
  'rows as arrays': [{ rows: [['a', null, '3', null, 'false']] }, /no column event_id/],
  'a row that is not an object': [{ rows: ['a'] }, /a row that is not an object/],
  'no rows': [{ rowCount: 1 }, /no array of rows/],
  'no result': [undefined, /no array of rows/],
};

describe('refuses', () => {
  test.each(Object.entries(REFUSED))('%s', async (_name, [result, message]) => {
    await expect(readRows(returning(result), '', [], COLUMNS)).rejects.toMatchObject({
      code: 'BAD_ROW',
      message: expect.stringMatching(message),
    });
  });

  test('any number of rows but one where one is returned', async () => {
    for (const rows of [[], [ROW, ROW]])
      await expect(readOneRow(returning({ rows }), '', [], COLUMNS)).rejects.toMatchObject({
        code: 'BAD_ROW',
      });
    expect(await readOneRow(returning({ rows: [ROW] }), '', [], { attempts: 'number' })).toEqual({
      attempts: 3,
    });
  });

  test('JSON that an adapter has parsed, and reads its text', async () => {
    const rows = [{ as_json: { n: 1 } }];
    await expect(readJsonRows(returning({ rows }), '')).rejects.toMatchObject({ code: 'BAD_ROW' });
    expect(await readJsonRows(returning({ rows: [{ as_json: '{"n":1}' }] }), '')).toEqual([{ n: 1 }]);
  });
});
