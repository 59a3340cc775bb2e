import type { PoolOptions } from 'mysql2/promise';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { mysql2 } from '../../lambdas/runtime/mysql/databases.ts';
import {
  booleanText,
  encoded,
  epochMs,
  FROM_NOW,
  ID,
  idOf,
  idParameter,
  idText,
  KEY,
  listOf,
  NOW,
  numberText,
  TEXT,
  TIME,
  textParameter,
} from '../../lambdas/runtime/store/mysql/expressions.ts';
import { readOneRow, readRows } from '../../lambdas/runtime/store/sql/sql-rows.ts';
import { type Rig, startRig } from './support/rig.ts';

let rig: Rig;

beforeAll(async () => {
  rig = await startRig('mysql-expressions');
  await rig.pool.query(
    'CREATE TABLE mailroom.probe (id BINARY(16) PRIMARY KEY, k VARBINARY(512) UNIQUE, t MEDIUMTEXT, at DATETIME(6), n INT) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin',
  );
});

afterAll(() => rig.close());

const ID_A = '01a1fba6-4458-7a41-9c37-3f5d2b8e1103';
const ID_B = '01a1fba6-4458-7a41-9c37-3f5d2b8e1104';

/** Text that a wrong character set, an escape or a collation would change. */
const HOSTILE = `{"x":"ünï 💥 \\' \\" \\\\ \u0000 %_ -- ?"}  `;

/** Settings of a pool or a session that must not matter. */
const POOLS: readonly (readonly [name: string, options: PoolOptions, session: readonly string[]])[] = [
  ['the defaults', {}, []],
  ['latin1', { charset: 'latin1_swedish_ci' }, []],
  [
    'NO_BACKSLASH_ESCAPES',
    {},
    ["SET SESSION sql_mode = CONCAT(@@sql_mode, ',NO_BACKSLASH_ESCAPES,ANSI_QUOTES')"],
  ],
  ['another time zone', { timezone: '+09:00' }, ["SET SESSION time_zone = '-11:30'"]],
  [
    'other types and rows',
    {
      dateStrings: true,
      supportBigNumbers: true,
      bigNumberStrings: true,
      rowsAsArray: true,
      nestTables: '_',
      namedPlaceholders: true,
      typeCast: () => 'cast',
    },
    [],
  ],
];

describe.each(POOLS)('values written and read with %s', (_name, options, session) => {
  test('are the same', async () => {
    const pool = rig.poolOf({ ...options, connectionLimit: 1 });
    try {
      for (const text of session) await pool.query(text);
      const sql = mysql2(pool);
      await sql.query('DELETE FROM mailroom.probe');
      const at = 1_764_400_000_123.456;
      await sql.query(`INSERT INTO mailroom.probe VALUES (${ID}, ${KEY}, ${TEXT}, ${TIME}, ?)`, [
        idParameter(ID_A),
        textParameter(HOSTILE),
        textParameter(HOSTILE),
        at,
        7,
      ]);
      await sql.query(`INSERT INTO mailroom.probe VALUES (${ID}, ${KEY}, ${TEXT}, ${FROM_NOW}, ?)`, [
        idParameter(ID_B),
        textParameter(HOSTILE.trimEnd()),
        textParameter(undefined),
        60_000,
        null,
      ]);
      const read = `SELECT ${idText('id')} AS id, ${encoded('k')} AS k, ${encoded('t')} AS t, ${epochMs('at')} AS at, ${numberText('n')} AS n,
        ${booleanText('n > 3')} AS is_large FROM mailroom.probe WHERE id IN ${listOf(ID, 2)} ORDER BY id`;
      const columns = {
        id: 'text',
        k: 'base64',
        t: 'base64?',
        at: 'number',
        n: 'number?',
        is_large: 'boolean',
      } as const;
      const [first, second] = await readRows(sql, read, [ID_A, ID_B].map(idParameter), columns);
      expect(first).toEqual({
        id: ID_A.replaceAll('-', ''),
        k: HOSTILE,
        t: HOSTILE,
        at,
        n: 7,
        is_large: true,
      });
      expect(idOf(first?.id ?? '')).toBe(ID_A);
      expect(second).toMatchObject({ k: HOSTILE.trimEnd(), t: undefined, n: undefined, is_large: false });
      const { now } = await readOneRow(sql, `SELECT ${epochMs(NOW)} AS now`, [], { now: 'number' });
      expect(Math.abs(now - Date.now())).toBeLessThan(300_000);
      expect((second?.at ?? 0) - now).toBeLessThanOrEqual(60_000);
      expect((second?.at ?? 0) - now).toBeGreaterThan(-240_000);
    } finally {
      await pool.end();
    }
  });
});
