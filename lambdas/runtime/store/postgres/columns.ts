import type { StoredEventRow } from '../../operations/outbox-rows.ts';
import type { RejectedPointer } from '../inbox-row.ts';
import type { OperationRow } from '../operation-record.ts';
import type { DeadPointer } from '../outbox-row.ts';
import { deadOf, eventOf, operationOf, rejectedOf } from '../sql/stored-columns.ts';
import type { UnreadableRow } from '../stored-rows.ts';
import { epochMs as ms } from './inbox-row.ts';
import type { ColumnsOf } from './message-columns.ts';

/** The status of an event: that of the first of its rows. */
export const STATUS = `CASE WHEN q.event_id IS NOT NULL THEN 'PENDING' WHEN d.event_id IS NOT NULL THEN 'DEAD'
  WHEN x.event_id IS NOT NULL THEN 'DISCARDED' WHEN p.published_at IS NOT NULL OR e.published_by = 'cdc' THEN 'PUBLISHED' WHEN c.event_id IS NOT NULL THEN 'CANCELLED' ELSE 'LOST' END`;

/** Events. */
export const OUTBOX: ColumnsOf<StoredEventRow> = {
  select: `SELECT e.event_id::text AS id, e.source, e.type, e.trace_id AS "traceId", e.published_by AS "publishedBy", e.envelope, ${STATUS} AS status,
    coalesce(q.attempts, d.attempts, 0) AS attempts, ${ms('q.due_at')} AS "dueAt", ${ms('d.dead_at')} AS "deadAt",
    ${ms('p.published_at')} AS "publishedAt", ${ms('p.resent_at')} AS "resentAt", ${ms('c.cancelled_at')} AS "cancelledAt", q.fence IS NOT NULL AS "isHeld", q.waits_for::text AS "waitsFor",
    ${ms('x.discarded_at')} AS "discardedAt", x.operator AS "discardedBy", x.reason AS "discardedReason", coalesce(q.last_error, d.last_error) AS "lastError", d.fingerprint
    FROM mailroom.event e LEFT JOIN mailroom.pending q USING (event_id) LEFT JOIN mailroom.dead d USING (event_id)
    LEFT JOIN mailroom.cancelled c USING (event_id) LEFT JOIN mailroom.discarded x USING (event_id)
    LEFT JOIN LATERAL (SELECT max(published_at) AS published_at, max(resent_at) AS resent_at FROM mailroom.published WHERE event_id = e.event_id) p ON true`,
  read: (row) => eventOf('postgres', row),
};

/** DEAD events. */
export const DEAD: ColumnsOf<DeadPointer | UnreadableRow> = {
  select: `SELECT d.event_id::text AS id, ${ms('d.dead_at')} AS "deadAt", coalesce(e.type, 'unknown') AS type, d.last_error AS "lastError",
    d.fingerprint FROM mailroom.dead d LEFT JOIN mailroom.event e USING (event_id)`,
  read: deadOf,
};

/** Rejected messages. */
export const REJECTED: ColumnsOf<RejectedPointer | UnreadableRow> = {
  select: `SELECT i.consumer, i.event_id AS id, coalesce(${ms('i.rejected_at')}, ${ms('i.changed_at')}) AS "rejectedAt", coalesce(i.reason, 'unknown') AS reason,
    coalesce(i.last_error, '') AS "lastError", coalesce(i.fingerprint, '') AS fingerprint,
    ceil(extract(epoch FROM i.expires_at))::float8 AS "expiresAt" FROM mailroom.inbox i`,
  read: rejectedOf,
};

/** The changes of operators. */
export const OPERATION: ColumnsOf<OperationRow | UnreadableRow> = {
  select: `SELECT ${ms('o.at')} AS at, o.token, o.operator AS by, o.command, o.subject, o.reason FROM mailroom.operation o`,
  read: operationOf,
};
