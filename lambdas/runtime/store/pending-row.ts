import type { BusEntry } from '../bus/event-bus.ts';
import { eventIdTime, isEventId, outboxKeyOf } from './event-id.ts';
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
  const eventId = typeof row.SK === 'string' ? row.SK.slice('EVENT#'.length) : undefined;
  if (typeof row.PK !== 'string' || typeof row.SK !== 'string' || !isEventId(eventId)) return undefined;
  // A copy in another partition is not the event's row: nobody would look for it there.
  const { PK, SK } = outboxKeyOf(eventId);
  if (row.PK !== PK || row.SK !== SK) return undefined;
  if (row.status !== 'PENDING' || typeof row.leaseUntil !== 'number') return undefined;
  return {
    key: { PK: row.PK, SK: row.SK },
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
  const eventId = String(SK).slice('EVENT#'.length);
  if (isEventId(eventId)) return eventIdTime(eventId);
  const minute = /^OUTBOX#(\d{4}-\d\d-\d\dT\d\d:\d\d)#/.exec(String(PK))?.[1];
  const startsAt = Date.parse(`${minute}Z`);
  return Number.isNaN(startsAt) ? undefined : startsAt;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
