import { randomUUID } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import { PUT_EVENTS_BYTES_MAX } from '../../bus/event-bus.ts';
import { xrayHeaderOf } from '../../observe/trace-context.ts';
import type { DatabaseRelayConfig } from '../../relay/database-config.ts';
import type { ClaimedEvent } from '../../relay/database-transitions.ts';
import { pastParked } from '../sql/past-parked.ts';
import { IN_ORDER } from './aggregate-order.ts';
import { claimRange, SETTLED_MS } from './claim-range.ts';
import type { Sql } from './sql.ts';
import { type RowOf, readRows } from './sql-rows.ts';
import { refuseBlind, seesAll } from './whole-view.ts';

/** Dependencies of {@link eventClaim}. */
export interface ClaimDeps {
  /** Those of its relay. */
  readonly config: Pick<
    DatabaseRelayConfig,
    'claimLeaseMs' | 'maxAttempts' | 'orderBy' | 'publishedRetentionDays' | 'publishTimeoutMs' | 'sources'
  >;
  readonly database: Sql;
  readonly clock: Clock;
}

/**
 * A claim reads at most this many bytes of envelopes, and one more: the rest of its group is released. Otherwise reading many large
 * envelopes could outlast the lease of the whole group, again and again.
 */
const CLAIM_BYTES_MAX = 8_000_000;

/**
 * A materialized query, because a claim with `IN (SELECT … LIMIT … SKIP LOCKED)` may be planned as a join that claims more than its limit.
 * `statement_timestamp()` is a constant for the planner: with `clock_timestamp()` it could not use the index.
 *
 * It reads from `$4` on. It always returns a row, with the time up to which it left no event that it could see: see {@link claimRange}; and whether it
 * could see all.
 */
const claimOf = (order: 'aggregate' | undefined) => `WITH due AS MATERIALIZED (
  SELECT event_id, due_at FROM mailroom.pending WHERE due_at >= $4::timestamptz AND due_at <= statement_timestamp() ORDER BY due_at LIMIT $1::int FOR UPDATE SKIP LOCKED
), ${order === undefined ? '' : `${IN_ORDER}, `}claimed AS (
  UPDATE mailroom.pending p SET due_at = clock_timestamp() + $2::double precision * interval '1 ms', fence = $3::uuid${order === undefined ? '' : ', waits_for = NULL'}
  FROM ${order === undefined ? 'due' : 'free'} due WHERE p.event_id = due.event_id RETURNING p.event_id, p.attempts
), reading AS (
  SELECT least(CASE WHEN count(*) >= $1::int THEN max(due_at) END, statement_timestamp() - ${SETTLED_MS}::float8 * interval '1 ms') AS up_to FROM due
), sized AS (
  SELECT c.event_id, c.attempts, e.source, e.type, e.trace_id, e.envelope,
    octet_length(e.envelope)::bigint + octet_length(e.source)::bigint + octet_length(e.type)::bigint + coalesce(octet_length(e.trace_id), 0::int)::bigint AS bytes
  FROM claimed c LEFT JOIN mailroom.event e ON e.event_id = c.event_id
), judged AS (
  SELECT *, CASE WHEN bytes >= ${PUT_EVENTS_BYTES_MAX}::bigint THEN 'too-large'
    WHEN (sum(bytes) FILTER (WHERE bytes < ${PUT_EVENTS_BYTES_MAX}::bigint) OVER (ORDER BY event_id))::bigint - bytes >= ${CLAIM_BYTES_MAX}::bigint THEN 'later' END AS unread FROM sized
)
SELECT to_char(r.up_to AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'::text) AS up_to, ${seesAll('relay')}::text AS whole, ${order === undefined ? "'0'" : '(SELECT count(*) FROM parked)::text'} AS parked, j.event_id::text AS event_id, j.unread, coalesce(j.attempts, 0::int)::text AS attempts,
  CASE WHEN j.unread IS NULL THEN j.source END AS source, CASE WHEN j.unread IS NULL THEN j.type END AS type,
  CASE WHEN j.unread IS NULL THEN j.trace_id END AS trace_id, CASE WHEN j.unread IS NULL THEN j.envelope END AS envelope
FROM reading r LEFT JOIN judged j ON true`;

const CLAIMED = {
  up_to: 'text',
  whole: 'boolean',
  parked: 'number',
  event_id: 'text?',
  unread: 'text?',
  source: 'text?',
  type: 'text?',
  trace_id: 'text?',
  envelope: 'text?',
  attempts: 'number',
} as const;

/** Creates the claim of one relay. @returns a function that claims the events that have been due the longest, at most a number of them */
export function eventClaim({
  config,
  database,
  clock,
}: ClaimDeps): (limit: number, fully?: boolean) => Promise<ClaimedEvent[]> {
  const range = claimRange(clock);
  const text = claimOf(config.orderBy);
  const claim = async (limit: number, fully?: boolean) => {
    const fence = randomUUID();
    // From before the claim: on the database's clock, the lease ends later than this.
    const leaseUntil = clock.now() + config.claimLeaseMs;
    const rows = await range.read(async (from) => {
      const read = await readRows(database, text, [limit, config.claimLeaseMs, fence, from], CLAIMED);
      refuseBlind(read[0]?.whole !== false, 'relay');
      return { rows: read, upTo: read[0]?.up_to };
    }, fully);
    const events = rows.flatMap((row) =>
      row.event_id === undefined ? [] : [claimedEvent(row.event_id, row, fence, leaseUntil)],
    );
    return { events, parked: rows[0]?.parked ?? 0 };
  };
  return (limit, fully) => pastParked(clock, limit, () => claim(limit, fully));
}

function claimedEvent(
  eventId: string,
  row: RowOf<typeof CLAIMED>,
  fence: string,
  leaseUntil: number,
): ClaimedEvent {
  return {
    eventId,
    fence,
    leaseUntil,
    attempts: row.attempts,
    unread: row.unread === 'too-large' || row.unread === 'later' ? row.unread : undefined,
    entry: {
      // An operator has removed the event: no source declares it, so it is reported.
      source: row.source ?? '',
      detailType: row.type ?? '',
      detail: row.envelope ?? '',
      traceHeader: xrayHeaderOf(row.trace_id),
    },
  };
}

const NEXT_DUE = `SELECT (extract(epoch FROM min(due_at) - clock_timestamp()) * 1000)::bigint::text AS ms
FROM mailroom.pending WHERE due_at > statement_timestamp()`;

/**
 * Returns the time until the next scheduled, released or leased event is due, milliseconds; `Infinity` for an empty queue.
 *
 * @throws the database's error
 */
export async function nextDueMs(database: Sql): Promise<number> {
  const [row] = await readRows(database, NEXT_DUE, [], { ms: 'number?' });
  return row?.ms ?? Number.POSITIVE_INFINITY;
}
