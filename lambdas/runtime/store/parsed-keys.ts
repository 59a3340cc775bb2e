import { isEventId, outboxKeyOf } from './event-id.ts';
import type { Key } from './table.ts';

/** The prefix of the sort keys of outbox rows. */
export const EVENT_PREFIX = 'EVENT#';

/** A key read from the table; its origin is unknown. */
interface StoredKey {
  readonly PK?: unknown;
  readonly SK?: unknown;
}

/** Returns the event id in the sort key of an outbox row, in any partition; `undefined` if it contains none. */
export function eventIdInSortKey(SK: unknown): string | undefined {
  if (typeof SK !== 'string' || !SK.startsWith(EVENT_PREFIX)) return undefined;
  const eventId = SK.slice(EVENT_PREFIX.length);
  return isEventId(eventId) ? eventId : undefined;
}

/**
 * Returns the id of the event whose outbox row has this key; `undefined` if the key is not one. A duplicate of a row in another
 * partition is not the event's row, because its id leads to another key.
 *
 * @example
 * ```ts
 * eventIdOf({ PK: 'OUTBOX#2026-11-21T01:09#03', SK: 'EVENT#01a1fba6-4458-7a41-9c37-3f5d2b8e1103' });
 * // '01a1fba6-4458-7a41-9c37-3f5d2b8e1103'
 * ```
 */
export function eventIdOf({ PK, SK }: StoredKey): string | undefined {
  const eventId = eventIdInSortKey(SK);
  return eventId !== undefined && outboxKeyOf(eventId).PK === PK ? eventId : undefined;
}

/** Returns the start of the minute of an outbox partition, epoch milliseconds; `undefined` if it is not such a partition. */
export function outboxMinuteTime(PK: unknown): number | undefined {
  const minute = /^OUTBOX#(\d{4}-\d\d-\d\dT\d\d:\d\d)#/.exec(String(PK))?.[1];
  const startsAt = Date.parse(`${minute}Z`);
  return Number.isNaN(startsAt) ? undefined : startsAt;
}

/** Returns the shard and the unsettled minute of a sweep pointer. */
export function unsettledMinuteOf({ PK, SK }: Key): { readonly shard: number; readonly minute: string } {
  return { shard: Number(PK.slice('SWEEP#'.length)), minute: SK };
}
