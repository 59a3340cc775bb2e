import { asMailroomError } from '../base/errors.ts';
import { DAY_MS } from '../base/units.ts';
import { DISCARDED_RETENTION_DAYS } from '../outbox/outbox-transitions.ts';
import { eventIdTime, lastIdOf } from '../store/event-id.ts';
import { DELETED_AT_ONCE, deleteExpiredMessages } from '../store/postgres/inbox-retention.ts';
import type { TransitionDeps } from '../store/postgres/relay-transitions.ts';
import { readOneRow, readRows } from '../store/postgres/sql-rows.ts';
import { refuseBlind, seesAll } from '../store/postgres/whole-view.ts';

/** The time of one round of deletes, milliseconds; the next round goes on. */
const ROUND_MS = 5_000;

/** Waiting events that one reading looks at. */
const COUNTED_MAX = 10_000;

const OLD = "statement_timestamp() - $1::float8 * interval '1 day'";

/** An event stays as long as it waits, is dead or discarded, or was published again. */
const DELETE_EVENTS = `WITH old AS MATERIALIZED (
  SELECT ctid FROM mailroom.published WHERE published_at < ${OLD} ORDER BY published_at LIMIT $2::int
), gone AS (
  DELETE FROM mailroom.published p USING old WHERE p.ctid = old.ctid RETURNING p.event_id
), events AS (
  DELETE FROM mailroom.event e USING gone WHERE e.event_id = gone.event_id
    AND NOT EXISTS (SELECT FROM mailroom.pending q WHERE q.event_id = e.event_id)
    AND NOT EXISTS (SELECT FROM mailroom.dead d WHERE d.event_id = e.event_id)
    AND NOT EXISTS (SELECT FROM mailroom.discarded d WHERE d.event_id = e.event_id)
    AND NOT EXISTS (SELECT FROM mailroom.published r WHERE r.event_id = e.event_id AND r.published_at >= ${OLD})
)
SELECT event_id::text AS event_id FROM gone`;

/** Deletes events of a final state. One that was published before is deleted with its row of that. */
const deleteFinal = (state: 'cancelled' | 'discarded') => `WITH old AS MATERIALIZED (
  SELECT event_id FROM mailroom.${state} WHERE ${state}_at < ${OLD} ORDER BY ${state}_at LIMIT $2::int
), gone AS (
  DELETE FROM mailroom.${state} c USING old WHERE c.event_id = old.event_id RETURNING c.event_id
), events AS (
  DELETE FROM mailroom.event e USING gone WHERE e.event_id = gone.event_id
    AND NOT EXISTS (SELECT FROM mailroom.published p WHERE p.event_id = e.event_id)
)
SELECT event_id::text AS event_id FROM gone`;

/** Ids begin with the time at which their transaction was made. A clock that is wrong makes a question about one unanswered, no more. */
const DELETE_COMMITS = `WITH old AS MATERIALIZED (
  SELECT commit_id FROM mailroom.commit WHERE commit_id < $1::uuid ORDER BY commit_id LIMIT $2::int
)
DELETE FROM mailroom.commit c USING old WHERE c.commit_id = old.commit_id RETURNING c.commit_id`;

/** Ids begin with the time at which their event was created or is due: those after the bound are scheduled. */
const COUNT = `WITH waiting AS MATERIALIZED (
  SELECT event_id, due_at FROM mailroom.pending WHERE event_id < $1::uuid ORDER BY event_id LIMIT ${COUNTED_MAX}
), judged AS (
  SELECT w.event_id::text AS event_id, w.due_at, ($2::text[] IS NULL OR e.source = ANY($2::text[])) IS TRUE AS declared
  FROM waiting w LEFT JOIN mailroom.event e USING (event_id)
)
SELECT count(*)::text AS pending, (count(*) FILTER (WHERE NOT declared))::text AS undeclared,
  min(event_id) FILTER (WHERE declared) AS oldest,
  coalesce(greatest(0, extract(epoch FROM statement_timestamp() - min(due_at) FILTER (WHERE declared))::float8 * 1000::float8), 0)::bigint::text AS overdue,
  (SELECT count(*)::text FROM mailroom.dead) AS dead, ${seesAll('relay')}::text AS whole
FROM judged`;

const COUNTED = {
  pending: 'number',
  undeclared: 'number',
  oldest: 'text?',
  overdue: 'number',
  dead: 'number',
  whole: 'boolean',
} as const;

/**
 * The state of the queue, and of the database as far as it slows relays down or fills the disk. If the owner of the schema lacks `pg_read_all_stats`,
 * the transactions of other logins have no start: then the age is unknown. Only a primary has a log position.
 */
const HEALTH = `SELECT
  (SELECT n_dead_tup FROM pg_stat_user_tables WHERE relid = 'mailroom.pending'::regclass::oid)::text AS deleted,
  pg_total_relation_size('mailroom.pending'::regclass)::text AS bytes,
  (SELECT CASE WHEN count(*) = 0::bigint THEN 0 ELSE max(age_ms) END FROM mailroom.oldest_snapshot())::text AS snapshot,
  (SELECT max(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)) FROM pg_replication_slots)::text AS lag
  WHERE NOT pg_is_in_recovery()`;

const HEALTH_COLUMNS = { deleted: 'number?', bytes: 'number?', snapshot: 'number?', lag: 'number?' } as const;

/** Emits the gauges of the queue and the database, and deletes what is older than its retention. It never throws. */
export async function careForTables(deps: TransitionDeps): Promise<void> {
  const { config, database, telemetry } = deps;
  const attempt = async (what: string, work: () => Promise<unknown>) => {
    await work().catch((error: unknown) => {
      telemetry.count('SweepFailures');
      telemetry.log.error(`The relay could not ${what}`, { error: asMailroomError(error) });
    });
  };
  await attempt('count the waiting events', () => emitGauges(deps));
  await attempt('read the state of the database', () => emitHealth(deps));
  const retentions = [
    [DELETE_EVENTS, config.publishedRetentionDays],
    [deleteFinal('cancelled'), config.publishedRetentionDays],
    [deleteFinal('discarded'), DISCARDED_RETENTION_DAYS],
  ] as const;
  for (const [text, days] of retentions)
    await attempt('delete old events', () =>
      deleteAll(deps, async () => (await readRows(database, text, [days, DELETED_AT_ONCE], {})).length),
    );
  await attempt('delete old rows of commits', () =>
    deleteAll(deps, async () => {
      const values = [lastIdOf(deps.clock.now() - DAY_MS), DELETED_AT_ONCE];
      return (await readRows(database, DELETE_COMMITS, values, {})).length;
    }),
  );
  await attempt('delete old inbox rows', () => deleteAll(deps, () => deleteExpiredMessages(database)));
}

async function emitGauges({ config, database, clock, telemetry }: TransitionDeps): Promise<void> {
  const now = clock.now();
  const values = [lastIdOf(now), config.sources ?? null];
  const counted = await readOneRow(database, COUNT, values, COUNTED);
  const { pending, undeclared, oldest, overdue, dead, whole } = counted;
  refuseBlind(whole, 'relay');
  telemetry.gauge('PendingEvents', pending);
  telemetry.gauge('UndeclaredEvents', undeclared);
  telemetry.gauge('DeadEvents', dead);
  const oldestAt = oldest === undefined ? now : eventIdTime(oldest);
  telemetry.duration('OldestPendingAge', Math.max(0, now - oldestAt));
  telemetry.duration('OldestLeaseAge', overdue);
}

async function emitHealth({ database, telemetry }: TransitionDeps): Promise<void> {
  for (const { deleted, bytes, snapshot, lag } of await readRows(database, HEALTH, [], HEALTH_COLUMNS)) {
    if (deleted !== undefined) telemetry.gauge('DeletedQueueRows', deleted);
    if (bytes !== undefined) telemetry.gauge('QueueBytes', bytes);
    if (snapshot !== undefined) telemetry.duration('OldestSnapshotAge', snapshot);
    if (lag !== undefined) telemetry.gauge('SlotLagBytes', lag);
  }
}

/** @param deleteSome - deletes at most {@link DELETED_AT_ONCE} rows, and returns their number */
async function deleteAll(
  { clock }: Pick<TransitionDeps, 'clock'>,
  deleteSome: () => Promise<number>,
): Promise<void> {
  const endsBy = clock.now() + ROUND_MS;
  while ((await deleteSome()) === DELETED_AT_ONCE && clock.now() < endsBy);
}
