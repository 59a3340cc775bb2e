import { type StoredEventRow, storedEvent } from '../../operations/outbox-rows.ts';
import { eventIdShard, eventIdTime, outboxKeyOf } from '../event-id.ts';
import type { RejectedPointer } from '../inbox-row.ts';
import { deadKey, operationKey, rejectedKey } from '../keys.ts';
import type { OperationRow } from '../operation-record.ts';
import type { DeadPointer } from '../outbox-row.ts';
import { SCHEMA } from '../row-schema.ts';
import { readDeadPointer, readOperation, readRejectedPointer, type UnreadableRow } from '../stored-rows.ts';
import { epochMs as ms } from './inbox-row.ts';
import { type ColumnsOf, present } from './message-columns.ts';

/** The status of an event: that of the first of its rows. */
export const STATUS = `CASE WHEN q.event_id IS NOT NULL THEN 'PENDING' WHEN d.event_id IS NOT NULL THEN 'DEAD'
  WHEN x.event_id IS NOT NULL THEN 'DISCARDED' WHEN p.published_at IS NOT NULL OR e.published_by = 'cdc' THEN 'PUBLISHED' WHEN c.event_id IS NOT NULL THEN 'CANCELLED' ELSE 'LOST' END`;

/** Events. One that is neither waiting, dead nor published has a status that no reader knows, so it is reported. */
export const OUTBOX: ColumnsOf<StoredEventRow> = {
  select: `SELECT e.event_id::text AS id, e.source, e.type, e.trace_id AS "traceId", e.published_by AS "publishedBy", e.envelope, ${STATUS} AS status,
    coalesce(q.attempts, d.attempts, 0) AS attempts, ${ms('q.due_at')} AS "dueAt", ${ms('d.dead_at')} AS "deadAt",
    ${ms('p.published_at')} AS "publishedAt", ${ms('p.resent_at')} AS "resentAt", ${ms('c.cancelled_at')} AS "cancelledAt", q.fence, q.waits_for::text AS "waitsFor",
    ${ms('x.discarded_at')} AS "discardedAt", x.operator AS "discardedBy", x.reason AS "discardedReason", coalesce(q.last_error, d.last_error) AS "lastError", d.fingerprint
    FROM mailroom.event e LEFT JOIN mailroom.pending q USING (event_id) LEFT JOIN mailroom.dead d USING (event_id)
    LEFT JOIN mailroom.cancelled c USING (event_id) LEFT JOIN mailroom.discarded x USING (event_id)
    LEFT JOIN LATERAL (SELECT max(published_at) AS published_at, max(resent_at) AS resent_at FROM mailroom.published WHERE event_id = e.event_id) p ON true`,
  read: ({ id, dueAt, deadAt, cancelledAt, lastError, fingerprint, fence, waitsFor, ...row }) => {
    const eventId = String(id);
    // The log has it from its commit on. When a connector reads it is not known for one event.
    const publishedAt = row.publishedAt ?? (row.publishedBy === 'cdc' ? eventIdTime(eventId) : null);
    // The id of a scheduled event has its due time, which a claim moves.
    const isScheduled = cancelledAt !== null || (fence === null && dueAt === eventIdTime(eventId));
    const item = present({
      ...outboxKeyOf(eventId),
      schema: SCHEMA,
      ...row,
      leaseUntil: dueAt ?? deadAt ?? row.discardedAt ?? publishedAt ?? 0,
      ...(isScheduled && { dueAt: eventIdTime(eventId) }),
      publishedAt,
      publishedBy: row.status === 'PUBLISHED' ? (row.publishedBy ?? 'relay') : undefined,
      deadAt,
      cancelledAt,
      lastError,
      fingerprint: fingerprint ?? (lastError && `relay: ${lastError}`),
    });
    const event = storedEvent(item);
    return event && { ...event, store: 'postgres', ...(waitsFor !== null && { waitsFor: String(waitsFor) }) };
  },
};

/** DEAD events. */
export const DEAD: ColumnsOf<DeadPointer | UnreadableRow> = {
  select: `SELECT d.event_id::text AS id, ${ms('d.dead_at')} AS "deadAt", coalesce(e.type, 'unknown') AS type, d.last_error AS "lastError",
    d.fingerprint FROM mailroom.dead d LEFT JOIN mailroom.event e USING (event_id)`,
  read: ({ id, ...row }) =>
    readDeadPointer({ ...deadKey(eventIdShard(String(id)), String(id)), schema: SCHEMA, ...row }),
};

/** Rejected messages. */
export const REJECTED: ColumnsOf<RejectedPointer | UnreadableRow> = {
  select: `SELECT i.consumer, i.event_id AS id, coalesce(${ms('i.rejected_at')}, ${ms('i.changed_at')}) AS "rejectedAt", coalesce(i.reason, 'unknown') AS reason,
    coalesce(i.last_error, '') AS "lastError", coalesce(i.fingerprint, '') AS fingerprint,
    ceil(extract(epoch FROM i.expires_at))::float8 AS "expiresAt" FROM mailroom.inbox i`,
  read: ({ consumer, id, ...row }) =>
    readRejectedPointer(present({ ...rejectedKey(String(consumer), String(id)), schema: SCHEMA, ...row })),
};

/** The changes of operators. */
export const OPERATION: ColumnsOf<OperationRow | UnreadableRow> = {
  select: `SELECT ${ms('o.at')} AS at, o.token, o.operator AS by, o.command, o.subject, o.reason FROM mailroom.operation o`,
  read: ({ token, ...row }) =>
    readOperation({
      ...operationKey(row.at, token),
      schema: SCHEMA,
      ...row,
      // They are not deleted.
      expiresAt: Math.ceil(row.at / 1_000),
    }),
};
