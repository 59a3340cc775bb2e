import { isTime } from '../base/clock.ts';
import { textOf } from '../base/json.ts';
import type { BusEntry } from '../bus/event-bus.ts';
import { xrayHeaderOf } from '../observe/trace-context.ts';
import { eventIdInSortKey, eventIdOf, eventIdTime } from '../store/event-id.ts';
import { outboxPartOf } from '../store/outbox-partition.ts';
import type { OutboxRow } from '../store/outbox-row.ts';
import { isKnownSchema } from '../store/row-schema.ts';
import { envelopeJson, isKnownEncoding } from '../store/stored-envelope.ts';
import type { Item, Key } from '../store/table.ts';

/** A PENDING row as it was read. */
export interface PendingRow {
  readonly key: Key;
  readonly eventId: string;
  /** The lease as it was read, on which a claim or a failure update is conditional. */
  readonly leaseUntil: number;
  readonly attempts: number;
  /** The time since which it has been PENDING, epoch milliseconds: its event's commit, or its latest requeue. */
  readonly since: number;
  /** The time before which it is not published, epoch milliseconds; absent unless its event is scheduled. */
  readonly dueAt?: number | undefined;
  /** The end of its producer's turn, epoch milliseconds; absent unless its producer publishes at once. */
  readonly producerUntil?: number | undefined;
  readonly entry: BusEntry;
}

/**
 * Views any item as a PENDING outbox row. A row that lacks attributes which a publish needs is returned as it is: PutEvents
 * refuses it, and it becomes DEAD, where it is visible.
 *
 * Invariant: a row of a schema or an encoding that this version does not support is never published, claimed or marked, because
 * its attributes may have another meaning. It keeps its minute unsettled and is reported until a relay of the version that wrote
 * it is deployed.
 *
 * @returns `undefined` if the item is not an outbox row, is not PENDING, or has an unknown schema or encoding
 */
export function pendingRow(item: Item): PendingRow | undefined {
  const row = item as Partial<OutboxRow>;
  if (!isKnownSchema(row.schema) || !isKnownEncoding(item.encoding)) return undefined;
  const eventId = eventIdOf(row);
  if (eventId === undefined || row.status !== 'PENDING' || typeof row.leaseUntil !== 'number')
    return undefined;
  return {
    key: { PK: String(row.PK), SK: String(row.SK) },
    eventId,
    leaseUntil: row.leaseUntil,
    attempts: typeof row.attempts === 'number' ? row.attempts : 0,
    since: Math.max(eventIdTime(eventId), isTime(row.requeuedAt) ? row.requeuedAt : 0),
    dueAt: typeof row.dueAt === 'number' ? row.dueAt : undefined,
    producerUntil: typeof row.producerUntil === 'number' ? row.producerUntil : undefined,
    entry: {
      source: textOf(row.source) ?? '',
      detailType: textOf(row.type) ?? '',
      // Inflated when it is read, and not kept: a page of rows may hold a thousand times its own size.
      get detail() {
        return detailOf(item);
      },
      traceHeader: xrayHeaderOf(row.traceId),
    },
  };
}

/**
 * Returns the lease that a publisher stores in a row. That of a scheduled event is always later than its due time, by any clock: a row
 * whose lease ends at its due time was never claimed, and its event may be cancelled.
 */
export function leaseOf({ dueAt = 0 }: Pick<PendingRow, 'dueAt'>, leaseUntil: number): number {
  return Math.max(leaseUntil, dueAt + 1);
}

/**
 * Returns the time at which a PENDING row was written, epoch milliseconds: from its event's id, or else from the minute in its
 * partition key. Rows that cannot be read also have an age.
 *
 * @param PK - of an outbox partition; a row with any other partition key has no age: `undefined`
 */
export function pendingSince({ PK, SK }: Item): number | undefined {
  const eventId = eventIdInSortKey(SK);
  return eventId === undefined ? outboxPartOf(PK)?.startsAt : eventIdTime(eventId);
}

/** Empty if it cannot be read: PutEvents refuses it, and the event becomes DEAD. */
function detailOf(item: Item): string {
  const stored = envelopeJson(item);
  return stored.problem === undefined ? stored.json : '';
}
