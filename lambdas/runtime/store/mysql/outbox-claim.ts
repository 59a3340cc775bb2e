import { randomUUID } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import { PUT_EVENTS_BYTES_MAX } from '../../bus/event-bus.ts';
import { xrayHeaderOf } from '../../observe/trace-context.ts';
import type { DatabaseRelayConfig } from '../../relay/database-config.ts';
import type { ClaimedEvent } from '../../relay/database-transitions.ts';
import type { Database, Sql } from '../sql/database.ts';
import { type ClaimedGroup, pastParked } from '../sql/past-parked.ts';
import { readRows } from '../sql/sql-rows.ts';
import { PLACE, PLACE_COLUMNS, type PlacedEvent, parkWaiting } from './aggregate-order.ts';
import {
  byIds,
  encoded,
  FROM_NOW,
  ID,
  idOf,
  idParameter,
  idText,
  listOf,
  NOW,
  numberText,
} from './expressions.ts';
import type { ClaimMode } from './server-check.ts';

/** Dependencies of {@link eventClaim}. */
export interface MysqlClaimDeps {
  /** Those of its relay. */
  readonly config: DatabaseRelayConfig;
  readonly database: Database<unknown>;
  readonly clock: Clock;
  /** @default 'skip-locked' */
  readonly claim?: ClaimMode | undefined;
}

/**
 * A claim reads at most this many bytes of envelopes, and one more: the rest of its group is released. Otherwise reading many large
 * envelopes could outlast the lease of the whole group, again and again.
 */
const CLAIM_BYTES_MAX = 8_000_000;

/** Without the index, a claim of a short queue would lock every row that it looks at, and others would skip them. */
const DUE = `SELECT ${idText('event_id')} AS event_id, ${PLACE} FROM mailroom.pending FORCE INDEX (pending_due_at)
WHERE due_at <= ${NOW} ORDER BY due_at LIMIT ?`;

/**
 * Without SKIP LOCKED, the events are read without a lock, and their rows are locked in the order of their ids. Those that another relay has
 * claimed meanwhile are not due any more.
 */
const READ_DUE = { 'skip-locked': `${DUE} FOR UPDATE SKIP LOCKED`, token: DUE } as const;

/** Without SKIP LOCKED, the rows are locked before they are looked at, as parking them needs. */
const LOCK_DUE = (count: number) =>
  `SELECT ${idText('event_id')} AS event_id, ${PLACE} FROM ${byIds('pending', count)} WHERE due_at <= ${NOW} FOR UPDATE`;

const LEASE = (count: number) =>
  `UPDATE ${byIds('pending', count)} SET waits_for = NULL, due_at = ${FROM_NOW}, fence = ${ID} WHERE due_at <= ${NOW}`;

/** The claimed events, without their envelopes. An operator may have removed one from `event`: no source declares it, so it is reported. */
const READ_CLAIMED = `SELECT ${idText('p.event_id')} AS event_id, ${numberText('p.attempts')} AS attempts, ${encoded('e.source')} AS source,
  ${encoded('e.type')} AS type, ${encoded('e.trace_id')} AS trace_id,
  ${numberText('COALESCE(OCTET_LENGTH(e.envelope) + OCTET_LENGTH(e.source) + OCTET_LENGTH(e.type) + COALESCE(OCTET_LENGTH(e.trace_id), 0), 0)')} AS bytes
FROM mailroom.pending p LEFT JOIN mailroom.event e USING (event_id) WHERE p.fence = ${ID} ORDER BY p.event_id`;

const CLAIMED = {
  event_id: 'text',
  attempts: 'number',
  source: 'base64?',
  type: 'base64?',
  trace_id: 'base64?',
  bytes: 'number',
} as const;

const READ_ENVELOPES = (count: number) =>
  `SELECT ${idText('event_id')} AS event_id, ${encoded('envelope')} AS envelope FROM mailroom.event WHERE event_id IN ${listOf(ID, count)}`;

const ENVELOPE = { event_id: 'text', envelope: 'base64' } as const;

/**
 * Creates the claim of one relay: a short transaction that leases the rows which have been due the longest, and reads their events. If it
 * fails, nothing is claimed. With `orderBy`, it puts off those that wait for another one of their aggregate.
 *
 * @returns a function that claims at most a number of events
 */
export function eventClaim({
  config,
  database,
  clock,
  claim = 'skip-locked',
}: MysqlClaimDeps): (limit: number) => Promise<ClaimedEvent[]> {
  const once = (limit: number): Promise<ClaimedGroup> => {
    const fence = randomUUID();
    // From before the claim: on the database's clock, the lease ends later than this.
    const leaseUntil = clock.now() + config.claimLeaseMs;
    return database.transaction(async (tx) => {
      const sql = database.in(tx);
      const due = await placedEvents(sql, READ_DUE[claim], [limit]);
      const ids = config.orderBy === undefined ? idsOf(due) : await inOrder(sql, due);
      if (ids.length === 0) return { events: [], parked: due.length };
      await sql.query(LEASE(ids.length), [...ids, config.claimLeaseMs, idParameter(fence)]);
      const events = await readClaimed(sql, fence, leaseUntil);
      return { events, parked: due.length - ids.length };
    });
  };

  /** Those of due events that wait for no other one of their aggregate. */
  const inOrder = async (sql: Sql, due: readonly PlacedEvent[]) => {
    const isLocked = claim === 'skip-locked' || due.length === 0;
    return parkWaiting(sql, isLocked ? due : await placedEvents(sql, LOCK_DUE(due.length), idsOf(due)));
  };

  return (limit) => pastParked(clock, limit, () => once(limit));
}

/** In the order of their ids, in which rows are locked. */
async function placedEvents(sql: Sql, text: string, values: readonly unknown[]): Promise<PlacedEvent[]> {
  const rows = await readRows(sql, text, values, { event_id: 'text', ...PLACE_COLUMNS });
  return rows.toSorted((a, b) => (a.event_id < b.event_id ? -1 : 1));
}

function idsOf(events: readonly PlacedEvent[]): string[] {
  return events.map(({ event_id }) => event_id);
}

async function readClaimed(sql: Sql, fence: string, leaseUntil: number): Promise<ClaimedEvent[]> {
  const rows = await readRows(sql, READ_CLAIMED, [idParameter(fence)], CLAIMED);
  const unread = new Map<string, 'too-large' | 'later'>();
  let total = 0;
  for (const { event_id, bytes } of rows) {
    if (bytes >= PUT_EVENTS_BYTES_MAX) unread.set(event_id, 'too-large');
    else if (total >= CLAIM_BYTES_MAX) unread.set(event_id, 'later');
    else total += bytes;
  }
  const ids = rows.map(({ event_id }) => event_id).filter((id) => !unread.has(id));
  const read = ids.length === 0 ? [] : await readRows(sql, READ_ENVELOPES(ids.length), ids, ENVELOPE);
  const envelopes = new Map(read.map(({ event_id, envelope }) => [event_id, envelope]));
  return rows.map(({ event_id, attempts, source = '', type = '', trace_id }) => ({
    eventId: idOf(event_id),
    fence,
    leaseUntil,
    attempts,
    unread: unread.get(event_id),
    entry: {
      source,
      detailType: type,
      detail: envelopes.get(event_id) ?? '',
      traceHeader: xrayHeaderOf(trace_id),
    },
  }));
}
