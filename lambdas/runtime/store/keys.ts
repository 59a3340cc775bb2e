import { isEventId, outboxKeyOf } from './event-id.ts';
import type { Key } from './table.ts';

/**
 * What the keys of Mailroom's items say. The makers of these keys are in `rows.ts`, and `outboxKeyOf` in `event-id.ts`.
 */

/** How the sort keys of outbox rows begin. */
export const EVENT_PREFIX = 'EVENT#';

/** A key as it was read: anybody may have written it. */
interface StoredKey {
  readonly PK?: unknown;
  readonly SK?: unknown;
}

/** The event id in the sort key of an outbox row, wherever that row is; `undefined` when there is none. */
export function eventIdInSortKey(SK: unknown): string | undefined {
  if (typeof SK !== 'string' || !SK.startsWith(EVENT_PREFIX)) return undefined;
  const eventId = SK.slice(EVENT_PREFIX.length);
  return isEventId(eventId) ? eventId : undefined;
}

/**
 * The id of the event whose outbox row a key is; `undefined` when it is not one. A copy of a row in another partition is not the
 * event's row: its id does not lead there.
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

/** When the minute of an outbox partition began, epoch milliseconds; `undefined` when it is not such a partition. */
export function outboxMinuteTime(PK: unknown): number | undefined {
  const minute = /^OUTBOX#(\d{4}-\d\d-\d\dT\d\d:\d\d)#/.exec(String(PK))?.[1];
  const startsAt = Date.parse(`${minute}Z`);
  return Number.isNaN(startsAt) ? undefined : startsAt;
}

/** The minute of a shard that a pointer of the sweep says is unsettled. */
export function unsettledMinuteOf({ PK, SK }: Key): { readonly shard: number; readonly minute: string } {
  return { shard: Number(PK.slice('SWEEP#'.length)), minute: SK };
}

/** The name of a side effect, by the sort key of its row; `undefined` when it is not the row of one. */
export function effectNameOf(SK: unknown): string | undefined {
  return typeof SK === 'string' && SK.startsWith('EFFECT#') ? SK.slice('EFFECT#'.length) : undefined;
}
