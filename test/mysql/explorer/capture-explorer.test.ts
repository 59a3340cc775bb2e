import type { PoolConnection } from 'mysql2/promise';
import { afterAll, beforeAll } from 'vitest';
import { DAY_MS } from '../../../lambdas/runtime/base/units.ts';
import { eventIdTime, lastIdOf } from '../../../lambdas/runtime/store/event-id.ts';
import { DELETE_CAPTURED } from '../../../lambdas/runtime/store/mysql/capture-schema.ts';
import { describeRetention } from '../../support/capture-exploration.ts';
import { type Beat, type Beaten, UNITS_PER_RETENTION } from '../../support/capture-model.ts';
import { type Rig, startRig } from '../support/rig.ts';

/** The time of each heartbeat, to which the clock of the session is set. */
const NOW_MS = Date.UTC(2026, 0, 1);

const UNIT_MS = DAY_MS / UNITS_PER_RETENTION;

const UNIT_HOURS = 24 / UNITS_PER_RETENTION;

let rig: Rig;
let sql: PoolConnection;

beforeAll(async () => {
  rig = await startRig('mysql-capture-explorer', { 'innodb-flush-log-at-trx-commit': '2' });
  sql = await rig.pool.getConnection();
  await sql.query('SET timestamp = ?', [NOW_MS / 1_000]);
});
afterAll(async () => {
  sql.release();
  await rig.close();
});

const unitsOf = (column: string) =>
  `TIMESTAMPDIFF(HOUR, UTC_TIMESTAMP(6), ${column}) DIV ${UNIT_HOURS} AS ${column}`;

const INSERT_EVENT = `INSERT INTO mailroom.captured (event_id, source, type, envelope, aggregate_type, aggregate_id)
  VALUES (?, 'orders', 'Placed', '{}', 'a', 'b')`;

const INSERT_ROW = `INSERT INTO mailroom.capture VALUES ('mailroom', 1, UTC_TIMESTAMP(6) + INTERVAL ? HOUR, UTC_TIMESTAMP(6) + INTERVAL ? HOUR)`;

async function beat({ events, row }: Beat): Promise<Beaten> {
  await sql.query('DELETE FROM mailroom.captured');
  await sql.query('DELETE FROM mailroom.capture');
  for (const at of new Set(events)) await sql.query(INSERT_EVENT, [lastIdOf(NOW_MS + at * UNIT_MS)]);
  const hours = ['since', 'beat_at'].map((name) => Number(row?.[name]) * UNIT_HOURS);
  if (row !== undefined) await sql.query(INSERT_ROW, hours);
  await sql.query("CALL mailroom.delete_captured('mailroom', 1)");
  const read = async (text: string) => (await sql.query(text))[0] as Record<string, string>[];
  const [left] = await read(`SELECT ${unitsOf('since')}, ${unitsOf('beat_at')} FROM mailroom.capture`);
  const ids = await read('SELECT event_id AS id FROM mailroom.captured');
  return {
    events: ids.map(({ id = '' }) => (eventIdTime(id) - NOW_MS) / UNIT_MS),
    row: { since: Number(left?.since), beat_at: Number(left?.beat_at) },
  };
}

async function without<T>(changes: readonly (readonly [string, string])[], check: () => Promise<T>) {
  let text = DELETE_CAPTURED;
  for (const [clause, replacement] of changes) {
    if (!text.includes(clause)) throw new Error(`delete_captured has no clause ${clause}`);
    text = text.replace(clause, replacement);
  }
  const replace = async (procedure: string) => {
    await sql.query('DROP PROCEDURE mailroom.delete_captured');
    await sql.query(procedure);
  };
  await replace(text);
  try {
    return await check();
  } finally {
    await replace(DELETE_CAPTURED);
  }
}

describeRetention({ beat, mayLag: false, without }, [
  ['an event stays for the retention', [['INTERVAL retention_days DAY', 'INTERVAL 0 DAY']]],
  [
    'a new connector deletes nothing for half of the retention',
    [['since <= at - INTERVAL retention_days * 12 HOUR AND', '']],
  ],
  ['a connector that was away counts as new', [['beat_at < at - INTERVAL days * 12 HOUR OR', '']]],
]);
