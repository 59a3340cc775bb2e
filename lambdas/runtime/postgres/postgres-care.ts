import { asMailroomError } from '../base/errors.ts';
import { eventIdTime } from '../store/event-id.ts';
import { DELETED_AT_ONCE, deleteExpiredMessages } from './postgres-inbox-retention.ts';
import type { TransitionDeps } from './postgres-transitions.ts';

/** The time of one round of deletes, milliseconds; the next round goes on. */
const ROUND_MS = 5_000;

/** Waiting events that one reading looks at. */
const COUNTED_MAX = 10_000;

const OLD = "statement_timestamp() - $1::int * interval '1 day'";

/** An event stays as long as it waits, is dead, or was published again. */
const DELETE_EVENTS = `WITH old AS MATERIALIZED (
  SELECT ctid FROM mailroom.published WHERE published_at < ${OLD} ORDER BY published_at LIMIT $2::int
), gone AS (
  DELETE FROM mailroom.published p USING old WHERE p.ctid = old.ctid RETURNING p.event_id
), events AS (
  DELETE FROM mailroom.event e USING gone WHERE e.event_id = gone.event_id
    AND NOT EXISTS (SELECT FROM mailroom.pending q WHERE q.event_id = e.event_id)
    AND NOT EXISTS (SELECT FROM mailroom.dead d WHERE d.event_id = e.event_id)
    AND NOT EXISTS (SELECT FROM mailroom.published r WHERE r.event_id = e.event_id AND r.published_at >= ${OLD})
)
SELECT event_id::text AS event_id FROM gone`;

const DELETE_CANCELLED = `WITH old AS MATERIALIZED (
  SELECT event_id FROM mailroom.cancelled WHERE cancelled_at < ${OLD} ORDER BY cancelled_at LIMIT $2::int
), gone AS (
  DELETE FROM mailroom.cancelled c USING old WHERE c.event_id = old.event_id RETURNING c.event_id
), events AS (
  DELETE FROM mailroom.event e USING gone WHERE e.event_id = gone.event_id
)
SELECT event_id::text AS event_id FROM gone`;

/** Ids begin with the time at which their event was created or is due: those after the bound are scheduled. */
const COUNT = `WITH waiting AS MATERIALIZED (
  SELECT event_id, due_at FROM mailroom.pending WHERE event_id < $1::uuid ORDER BY event_id LIMIT ${COUNTED_MAX}
), judged AS (
  SELECT w.event_id::text AS event_id, w.due_at, ($2::text[] IS NULL OR e.source = ANY($2::text[])) IS TRUE AS declared
  FROM waiting w LEFT JOIN mailroom.event e USING (event_id)
)
SELECT count(*)::int AS pending, (count(*) FILTER (WHERE NOT declared))::int AS undeclared,
  min(event_id) FILTER (WHERE declared) AS oldest,
  coalesce(greatest(0, extract(epoch FROM statement_timestamp() - min(due_at) FILTER (WHERE declared)) * 1000), 0)::bigint::text AS overdue,
  (SELECT count(*)::int FROM mailroom.dead) AS dead
FROM judged`;

/** Emits the gauges of the queue, and deletes what is older than its retention. It never throws. */
export async function careForTables(deps: TransitionDeps): Promise<void> {
  const { config, database, telemetry } = deps;
  const attempt = async (what: string, work: () => Promise<unknown>) => {
    await work().catch((error: unknown) => {
      telemetry.count('SweepFailures');
      telemetry.log.error(`The relay could not ${what}`, { error: asMailroomError(error) });
    });
  };
  await attempt('count the waiting events', () => emitGauges(deps));
  for (const text of [DELETE_EVENTS, DELETE_CANCELLED])
    await attempt('delete old events', () =>
      deleteAll(deps, async () => {
        const { rows } = await database.query(text, [config.publishedRetentionDays, DELETED_AT_ONCE]);
        return rows.length;
      }),
    );
  await attempt('delete old inbox rows', () => deleteAll(deps, () => deleteExpiredMessages(database)));
}

async function emitGauges({ config, database, clock, telemetry }: TransitionDeps): Promise<void> {
  const now = clock.now();
  const hex = now.toString(16).padStart(12, '0');
  const bound = `${hex.slice(0, 8)}-${hex.slice(8)}-7fff-bfff-ffffffffffff`;
  const { rows } = await database.query(COUNT, [bound, config.sources ?? null]);
  const { pending, undeclared, oldest, overdue, dead } = Object(rows[0]);
  telemetry.gauge('PendingEvents', Number(pending));
  telemetry.gauge('UndeclaredEvents', Number(undeclared));
  telemetry.gauge('DeadEvents', Number(dead));
  telemetry.duration(
    'OldestPendingAge',
    oldest === null ? 0 : Math.max(0, now - eventIdTime(String(oldest))),
  );
  telemetry.duration('OldestLeaseAge', Number(overdue));
}

/** @param deleteSome - deletes at most {@link DELETED_AT_ONCE} rows, and returns their number */
async function deleteAll(
  { clock }: Pick<TransitionDeps, 'clock'>,
  deleteSome: () => Promise<number>,
): Promise<void> {
  const endsBy = clock.now() + ROUND_MS;
  while ((await deleteSome()) === DELETED_AT_ONCE && clock.now() < endsBy);
}
