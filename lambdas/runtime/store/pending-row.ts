import type { BusEntry } from '../bus/event-bus.ts';
import { eventIdTime } from './event-id.ts';
import { eventIdInSortKey, eventIdOf, outboxMinuteTime } from './keys.ts';
import { isKnownSchema, type OutboxRow } from './rows.ts';
import type { Item, Key } from './table.ts';

/** A PENDING row as somebody read it. */
export interface PendingRow {
  readonly key: Key;
  readonly eventId: string;
  /** The lease as it was read: the value that a claim or a failure update compares with. */
  readonly leaseUntil: number;
  readonly attempts: number;
  readonly entry: BusEntry;
}

/**
 * Views an item as a PENDING outbox row, whoever wrote it. A row without what a publish needs keeps what it has:
 * PutEvents refuses it, and it ends DEAD where it can be seen.
 *
 * Invariant: a row of a schema that this version does not know is never published, claimed or marked. Its attributes may mean
 * something else. It keeps its minute unsettled and is reported, until a relay of the version that wrote it is deployed.
 *
 * @returns `undefined` when the item is not an outbox row, is not PENDING, or has an unknown schema
 */
export function pendingRow(item: Item): PendingRow | undefined {
  const row = item as Partial<OutboxRow>;
  if (!isKnownSchema(row.schema)) return undefined;
  const eventId = eventIdOf(row);
  if (eventId === undefined || row.status !== 'PENDING' || typeof row.leaseUntil !== 'number')
    return undefined;
  return {
    key: { PK: String(row.PK), SK: String(row.SK) },
    eventId,
    leaseUntil: row.leaseUntil,
    attempts: typeof row.attempts === 'number' ? row.attempts : 0,
    entry: {
      source: textOf(row.source),
      detailType: textOf(row.type),
      detail: textOf(row.envelope),
      traceHeader: textOf(row.traceId) || undefined,
    },
  };
}

/**
 * When a PENDING row was written, epoch milliseconds, whoever wrote it: its event's id says so, else the minute that its
 * partition is named after. A row that cannot be read waits like any other.
 *
 * @param PK - of the outbox; a row in another place is of no age: `undefined`
 */
export function pendingSince({ PK, SK }: Item): number | undefined {
  const eventId = eventIdInSortKey(SK);
  return eventId === undefined ? outboxMinuteTime(PK) : eventIdTime(eventId);
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
