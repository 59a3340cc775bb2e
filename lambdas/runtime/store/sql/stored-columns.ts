import type { DatabaseEngine } from '../../base/database-engine.ts';
import { type StoredEventRow, storedEvent } from '../../operations/outbox-rows.ts';
import { eventIdShard, eventIdTime, outboxKeyOf } from '../event-id.ts';
import type { RejectedPointer } from '../inbox-row.ts';
import { deadKey, operationKey, rejectedKey } from '../keys.ts';
import type { OperationRow } from '../operation-record.ts';
import type { DeadPointer } from '../outbox-row.ts';
import { SCHEMA } from '../row-schema.ts';
import { readDeadPointer, readOperation, readRejectedPointer, type UnreadableRow } from '../stored-rows.ts';
import type { Item } from '../table.ts';
import { present } from './message-columns.ts';

/**
 * The row of an event, from the columns of its tables. Times are epoch milliseconds; a member of a column that is NULL is null or absent. One
 * that is neither waiting, dead nor published has a status that no reader knows, so it is reported.
 */
export function eventOf(store: DatabaseEngine, columns: Item): StoredEventRow | undefined {
  const { id, dueAt, deadAt, cancelledAt, lastError, fingerprint, isHeld, waitsFor, ...row } =
    present(columns);
  const eventId = String(id);
  // The log has it from its commit on. When a connector reads it is not known for one event.
  const publishedAt = row.publishedAt ?? (row.publishedBy === 'cdc' ? eventIdTime(eventId) : undefined);
  // The id of a scheduled event has its due time, which a claim moves.
  const isScheduled = cancelledAt !== undefined || (!isHeld && dueAt === eventIdTime(eventId));
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
  return event && { ...event, store, ...(waitsFor !== undefined && { waitsFor: String(waitsFor) }) };
}

/** A DEAD event, from its columns. */
export function deadOf({ id, ...row }: Item): DeadPointer | UnreadableRow | undefined {
  return readDeadPointer({ ...deadKey(eventIdShard(String(id)), String(id)), schema: SCHEMA, ...row });
}

/** A rejected message, from its columns. */
export function rejectedOf({ consumer, id, ...row }: Item): RejectedPointer | UnreadableRow | undefined {
  return readRejectedPointer(
    present({ ...rejectedKey(String(consumer), String(id)), schema: SCHEMA, ...row }),
  );
}

/** An operator's change, from its columns. They are not deleted. */
export function operationOf({ token, ...row }: Item): OperationRow | UnreadableRow | undefined {
  const expiresAt = Math.ceil(row.at / 1_000);
  return readOperation({ ...operationKey(row.at, token), schema: SCHEMA, ...row, expiresAt });
}
