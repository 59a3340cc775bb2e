import { createHash, randomBytes as nodeRandomBytes } from 'node:crypto';
import { MailroomError } from '../base/errors.ts';
import { EVENT_PREFIX, outboxKey } from './keys.ts';
import type { Key } from './table.ts';

/** A source of random bytes; tests pass their own. */
export type RandomBytes = (count: number) => Uint8Array;

/** The machine's random bytes. */
export const systemRandomBytes: RandomBytes = (count) => nodeRandomBytes(count);

const EVENT_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/**
 * Creates an event id: a UUIDv7 (RFC 9562) whose last byte is the shard. The id alone determines the key of the event's row, and
 * raising the number of shards moves no rows. The id has no monotonic counter: two ids of the same millisecond have no order.
 *
 *     01a1fba6-4458-7a41-9c37-3f5d2b8e1103
 *     └── time, ms ─┘ │   │             └└ shard 3
 *                     └ version and variant, the rest random
 *
 * @param now - epoch milliseconds
 * @param shards - 1 to 256
 */
export function mintEventId(now: number, shards: number, random: RandomBytes = systemRandomBytes): string {
  const bytes = Buffer.from(random(16));
  bytes.writeUIntBE(now, 0, 6);
  bytes[6] = 0x70 | (byteAt(bytes, 6) & 0x0f);
  bytes[8] = 0x80 | (byteAt(bytes, 8) & 0x3f);
  bytes[15] = byteAt(bytes, 15) % shards;
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

function byteAt(bytes: Buffer, index: number): number {
  return bytes.readUInt8(index);
}

/** Returns true for an event id: a UUIDv7 in lowercase. */
export function isEventId(text: unknown): text is string {
  return typeof text === 'string' && EVENT_ID.test(text);
}

const UNREADABLE = 'unreadable-';

/**
 * Returns the id under which the inbox knows a message whose event cannot be read. It names no event, so no handler ever runs under it.
 *
 * It is made from the body, which every redrive keeps; the SQS message id is a new one after each. Once the event can be read, its id comes
 * from the body alone, so two messages with equal bodies are one event.
 */
export function unreadableId(body: string): string {
  return `${UNREADABLE}${createHash('sha256').update(body).digest('hex').slice(0, 32)}`;
}

/** Returns one of 4,096 marks of an {@link unreadableId}: the inbox's history has those of all that an operator has settled. */
export function unreadableMark(id: string): string {
  return id.slice(UNREADABLE.length, UNREADABLE.length + 3);
}

/** Returns true for the id of a message whose event cannot be read. */
export function isUnreadableId(id: string): boolean {
  return id.startsWith(UNREADABLE);
}

/**
 * Returns the time in an event id, epoch milliseconds: when it was created or, if its event is scheduled, when that is due.
 *
 * @throws `BAD_EVENT_ID` if the text is not an event id
 */
export function eventIdTime(eventId: string): number {
  requireEventId(eventId);
  return Number.parseInt(eventId.slice(0, 8) + eventId.slice(9, 13), 16);
}

/** Returns the last event id of a time. @param ms - epoch milliseconds */
export function lastIdOf(ms: number): string {
  const hex = ms.toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7fff-bfff-ffffffffffff`;
}

/**
 * Returns the shard of an event id, 0 to 255.
 *
 * @throws `BAD_EVENT_ID` if the text is not an event id
 */
export function eventIdShard(eventId: string): number {
  requireEventId(eventId);
  return Number.parseInt(eventId.slice(-2), 16);
}

/** Formats the minute of a time as in keys, UTC, e.g. `2026-11-21T01:09`. */
export function minuteOf(time: number): string {
  const minute = Math.floor(time / 60_000);
  if (minute !== lastMinute.minute) lastMinute = { minute, text: new Date(time).toISOString().slice(0, 16) };
  return lastMinute.text;
}

/** Kept, because a relay formats the minute of each row that it reads, and neighbors are of one minute. */
let lastMinute = { minute: Number.NaN, text: '' };

/** Returns the key of an event's outbox row, computed from its id alone. */
export function outboxKeyOf(eventId: string): Key {
  return outboxKey(minuteOf(eventIdTime(eventId)), eventIdShard(eventId), eventId);
}

/** Creates a random token, for the fence of a claim, a pointer or a transaction: 32 hex digits. */
export function mintToken(random: RandomBytes = systemRandomBytes): string {
  return Buffer.from(random(16)).toString('hex');
}

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

function requireEventId(eventId: string): void {
  if (!isEventId(eventId)) {
    throw new MailroomError(
      'BAD_EVENT_ID',
      `"${eventId}" is not an event id; expected a UUIDv7 in lowercase.`,
    );
  }
}
