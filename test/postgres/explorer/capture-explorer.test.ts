import type { PoolClient, QueryResult } from 'pg';
import { afterAll, beforeAll } from 'vitest';
import { DAY_MS } from '../../../lambdas/runtime/base/units.ts';
import { eventIdTime, lastIdOf } from '../../../lambdas/runtime/store/event-id.ts';
import { describeRetention } from '../../support/capture-exploration.ts';
import { type Beat, type Beaten, UNITS_PER_RETENTION } from '../../support/capture-model.ts';
import { type Rig, startRig } from '../support/rig.ts';
import { type Change, withoutClause } from '../support/without-clause.ts';

const UNIT_MS = DAY_MS / UNITS_PER_RETENTION;

/** The time of each heartbeat. */
const NOW_MS = Date.UTC(2026, 0, 1);

const NOW = `'${new Date(NOW_MS).toISOString()}'::timestamptz`;

/** The function reads its clock, its slot and the end of the log from the model. */
const OF_THE_MODEL: readonly Change[] = [
  ['clock_timestamp()', NOW],
  ['pg_replication_slots', 'public.slot'],
  ['pg_current_wal_insert_lsn()', '(SELECT written FROM public.slot)'],
];

const LAGGED = '(c.captured_until BETWEEN excluded.lsn_at - $2 / 2 AND excluded.lsn_at) IS NOT TRUE';

let rig: Rig;
let sql: PoolClient;

beforeAll(async () => {
  rig = await startRig('capture-explorer');
  sql = await rig.pool.connect();
  await sql.query(`CREATE TABLE public.slot AS
    SELECT 'mailroom'::name AS slot_name, current_database() AS database, 'reserved' AS wal_status, '0/0'::pg_lsn AS confirmed_flush_lsn, '0/0'::pg_lsn AS written`);
});
afterAll(async () => {
  sql.release();
  await rig.close();
});

const at = (units: number | null | undefined) => `${NOW} + ${units ?? null} * interval '${UNIT_MS} ms'`;

const position = (events: number | null | undefined) => `'0/0'::pg_lsn + ${events}`;

const unitsOf = (column: string) =>
  `(extract(epoch FROM ${column} - ${NOW}) * 1000 / ${UNIT_MS})::float8 AS ${column}`;

const insertEvent = (id: string) =>
  `INSERT INTO mailroom.event (event_id, source, type, envelope, aggregate_type, aggregate_id, published_by)
    VALUES ('${id}', 'orders', 'Placed', '{}', 'a', 'b', 'cdc') ON CONFLICT DO NOTHING;`;

const insertRow = ({ since, lsn, lsn_at, captured_until }: NonNullable<Beat['row']>) =>
  `INSERT INTO mailroom.capture (slot, retention, since, lsn, lsn_at, captured_until)
    VALUES ('mailroom', '1 day', ${at(since)}, ${position(lsn)}, ${at(lsn_at)}, ${at(captured_until)});`;

/** One call of the server for each heartbeat: there are thousands. */
async function beat({ events, row, written, confirmed }: Beat): Promise<Beaten> {
  const stored = events.map((time) => insertEvent(lastIdOf(NOW_MS + time * UNIT_MS))).join('');
  const results = await sql.query(`BEGIN;
    UPDATE public.slot SET confirmed_flush_lsn = ${position(confirmed)}, written = ${position(written)};
    ${stored}
    ${row === undefined ? '' : insertRow(row)}
    SELECT mailroom.delete_captured('mailroom', '1 day');
    SELECT event_id AS id FROM mailroom.event;
    SELECT ${unitsOf('since')}, (lsn - '0/0')::int AS lsn, ${unitsOf('lsn_at')}, ${unitsOf('captured_until')} FROM mailroom.capture;
    ROLLBACK`);
  const [left, kept] = (results as unknown as QueryResult[]).slice(-3);
  return {
    events: (left?.rows ?? []).map(({ id }) => (eventIdTime(id) - NOW_MS) / UNIT_MS),
    row: kept?.rows[0],
  };
}

const without = <T>(changes: readonly Change[], check: () => Promise<T>) =>
  withoutClause(sql, 'delete_captured', [...OF_THE_MODEL, ...changes], check);

describeRetention({ beat, mayLag: true, without }, [
  ['an event that was not confirmed stays', [['confirmed >= c.lsn', 'true']]],
  [
    'a new slot deletes nothing for half of the retention',
    [['c.captured_until - c.retention / 2 >= c.since', 'c.captured_until >= c.since']],
  ],
  ['a slot that takes the place of one that lagged counts as new', [[LAGGED, 'false']]],
  [
    'it does so also with a reading that is younger than the lag',
    [[LAGGED, 'c.lsn_at < excluded.lsn_at - $2 / 2']],
  ],
  ['an event stays for the retention', [['min(c.captured_until - c.retention)', 'min(c.captured_until)']]],
]);
