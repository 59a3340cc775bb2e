import { asMailroomError } from '../base/errors.ts';
import { DAY_MS } from '../base/units.ts';
import { DISCARDED_RETENTION_DAYS } from '../outbox/outbox-transitions.ts';
import { eventIdTime, lastIdOf } from '../store/event-id.ts';
import { byIds, ID, idOf, idParameter, idText, listOf, NOW, numberText } from '../store/mysql/expressions.ts';
import { DELETED_AT_ONCE, deleteExpiredMessages } from '../store/mysql/inbox-retention.ts';
import type { MysqlTransitionDeps } from '../store/mysql/relay-transitions.ts';
import type { Sql } from '../store/sql/database.ts';
import { readOneRow, readRows } from '../store/sql/sql-rows.ts';

/** The time of one round of deletes, milliseconds; the next round goes on. */
const ROUND_MS = 5_000;

/** Waiting events that one reading looks at. */
const COUNTED_MAX = 10_000;

/** The tables of events that are not published any more, and the days for which each keeps them. */
const FINAL = ['published', 'cancelled', 'discarded'] as const;

/** In the order of their ids, in which operators and relays lock them, too. */
const OLD = (table: (typeof FINAL)[number]) => `SELECT ${idText('event_id')} AS event_id FROM (
  SELECT event_id FROM mailroom.${table} WHERE ${table}_at < ${NOW} - INTERVAL ? DAY ORDER BY ${table}_at LIMIT ${DELETED_AT_ONCE}
) old ORDER BY event_id`;

const LOCKED = (table: (typeof FINAL)[number], count: number) =>
  `SELECT ${idText('event_id')} AS event_id FROM ${byIds(table, count)} WHERE ${table}_at < ${NOW} - INTERVAL ? DAY FOR UPDATE`;

/** An event stays as long as it waits, is dead or discarded, or was published. One statement sees all tables as of one moment. */
const DELETE_EVENTS = (table: (typeof FINAL)[number], count: number) => {
  const others = ['pending', 'dead', 'published', 'discarded', 'cancelled'].filter(
    (other) => other !== table,
  );
  const absent = others.map(
    (other) => `NOT EXISTS (SELECT 1 FROM mailroom.${other} o WHERE o.event_id = mailroom.event.event_id)`,
  );
  return `DELETE mailroom.event FROM ${byIds('event', count)} WHERE ${absent.join(' AND ')}`;
};

/** Ids begin with the time at which their transaction was made. */
const OLD_COMMITS = `SELECT ${idText('commit_id')} AS event_id FROM mailroom.commit WHERE commit_id < ${ID} ORDER BY commit_id LIMIT ${DELETED_AT_ONCE}`;

/** Ids begin with the time at which their event was created or is due: those after the bound are scheduled. */
const COUNT = (sources: readonly string[] | undefined) => {
  const isDeclared =
    sources === undefined
      ? 'e.event_id IS NOT NULL'
      : sources.length === 0
        ? 'FALSE'
        : `COALESCE(CAST(e.source AS BINARY) IN ${listOf('FROM_BASE64(?)', sources.length)}, FALSE)`;
  return `SELECT ${numberText('COUNT(*)')} AS pending, ${numberText('COALESCE(SUM(NOT j.declared), 0)')} AS undeclared,
  MIN(IF(j.declared, j.id, NULL)) AS oldest,
  ${numberText(`GREATEST(0, COALESCE(TIMESTAMPDIFF(MICROSECOND, MIN(IF(j.declared, j.due_at, NULL)), ${NOW}), 0)) / 1000`)} AS overdue,
  (SELECT ${numberText('COUNT(*)')} FROM mailroom.dead) AS dead
FROM (
  SELECT ${idText('w.event_id')} AS id, w.due_at, ${isDeclared} AS declared FROM (
    SELECT event_id, due_at FROM mailroom.pending WHERE event_id < ${ID} ORDER BY event_id LIMIT ${COUNTED_MAX}
  ) w LEFT JOIN mailroom.event e ON e.event_id = w.event_id
) j`;
};

const COUNTED = {
  pending: 'number',
  undeclared: 'number',
  oldest: 'text?',
  overdue: 'number',
  dead: 'number',
} as const;

/** Emits the gauges of the queue, and deletes rows whose retention is over. It never throws. */
export async function careForTables(deps: MysqlTransitionDeps): Promise<void> {
  const { config, telemetry } = deps;
  const attempt = async (task: string, work: () => Promise<unknown>) => {
    await work().catch((error: unknown) => {
      telemetry.count('SweepFailures');
      telemetry.log.error(`The relay could not ${task}`, { error: asMailroomError(error) });
    });
  };
  await attempt('count the waiting events', () => emitGauges(deps));
  for (const table of FINAL) {
    const days = table === 'discarded' ? DISCARDED_RETENTION_DAYS : config.publishedRetentionDays;
    await attempt('delete old events', () => deleteAll(deps, (sql) => deleteFinal(sql, table, days)));
  }
  await attempt('delete old rows of commits', () =>
    deleteAll(deps, async (sql) => {
      const before = idParameter(lastIdOf(deps.clock.now() - DAY_MS));
      const ids = await idsOf(sql, OLD_COMMITS, [before]);
      if (ids.length > 0) await sql.query(`DELETE mailroom.commit FROM ${byIds('commit', ids.length)}`, ids);
      return ids.length;
    }),
  );
  // A server without SKIP LOCKED has no inbox.
  if (deps.claim !== 'token')
    await attempt('delete old inbox rows', () => deleteAll(deps, deleteExpiredMessages));
}

async function emitGauges({ config, database, clock, telemetry }: MysqlTransitionDeps): Promise<void> {
  const now = clock.now();
  const sources = config.sources?.map((source) => Buffer.from(source).toString('base64'));
  const values = [...(sources ?? []), idParameter(lastIdOf(now))];
  const { pending, undeclared, oldest, overdue, dead } = await readOneRow(
    database,
    COUNT(config.sources),
    values,
    COUNTED,
  );
  telemetry.gauge('PendingEvents', pending);
  telemetry.gauge('UndeclaredEvents', undeclared);
  telemetry.gauge('DeadEvents', dead);
  const oldestAt = oldest === undefined ? now : eventIdTime(idOf(oldest));
  telemetry.duration('OldestPendingAge', Math.max(0, now - oldestAt));
  telemetry.duration('OldestLeaseAge', overdue);
}

/** @returns the number of rows that it has deleted */
async function deleteFinal(sql: Sql, table: (typeof FINAL)[number], days: number): Promise<number> {
  const old = await idsOf(sql, OLD(table), [days]);
  if (old.length === 0) return 0;
  const ids = await idsOf(sql, LOCKED(table, old.length), [...old, days]);
  if (ids.length === 0) return 0;
  await sql.query(DELETE_EVENTS(table, ids.length), ids);
  await sql.query(`DELETE mailroom.${table} FROM ${byIds(table, ids.length)}`, ids);
  return ids.length;
}

async function idsOf(sql: Sql, text: string, values: readonly unknown[]): Promise<string[]> {
  return (await readRows(sql, text, values, { event_id: 'text' })).map(({ event_id }) => event_id);
}

/** @param deleteSome - deletes at most {@link DELETED_AT_ONCE} rows in a transaction, and returns their number */
async function deleteAll(
  { clock, database }: Pick<MysqlTransitionDeps, 'clock' | 'database'>,
  deleteSome: (sql: Sql) => Promise<number>,
): Promise<void> {
  const endsBy = clock.now() + ROUND_MS;
  const once = () => database.transaction((tx) => deleteSome(database.in(tx)));
  while ((await once()) === DELETED_AT_ONCE && clock.now() < endsBy);
}
