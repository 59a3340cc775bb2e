import type { Item, Key } from './table.ts';

/**
 * The stored shape, whole: every kind of item in the Mailroom table, its key and its attributes. All times are
 * epoch milliseconds, except `expiresAt`, which is in seconds because DynamoDB's TTL says so.
 */

/** The version of the stored shape, carried by every item. Raise it when a shape changes, and say how old rows read. */
export const SCHEMA = 1;

/**
 * Whether this version knows the shape of a row. Every version writes its schema, so a row without one is not of a newer version.
 *
 * @param schema - the row's attribute, as it was read
 */
export function isKnownSchema(schema: unknown): boolean {
  if (schema === undefined) return true;
  return typeof schema === 'number' && Number.isSafeInteger(schema) && schema >= 1 && schema <= SCHEMA;
}

/** The TTL attribute, epoch **seconds**. Only on rows that nobody has to work on any more. */
export const EXPIRES_AT = 'expiresAt';

/** How the partition keys of outbox rows begin. */
export const OUTBOX_PREFIX = 'OUTBOX#';
/** How the partition keys of inbox rows, and of their effects, begin. */
export const INBOX_PREFIX = 'INBOX#';
const EFFECT_PREFIX = 'EFFECT#';
const HISTORY = 'HISTORY';

const DAY_S = 86_400;

/** The TTL value of a row that may be deleted `days` days after `now`. */
export function expiresAt(now: number, days: number): number {
  return Math.ceil(now / 1_000) + days * DAY_S;
}

/** Where an outbox row stands: see the state diagram in docs/data-model.md. `DISCARDED` is an operator's end of a DEAD event. */
export type OutboxStatus = 'PENDING' | 'PUBLISHED' | 'DEAD' | 'DISCARDED';

/** An event in the outbox: `OUTBOX#<minute>#<shard>` / `EVENT#<eventId>`. */
export interface OutboxRow extends Key {
  /** The version of the row's shape. */
  readonly schema: number;
  /** Where it stands. */
  readonly status: OutboxStatus;
  /** Until when a PENDING row belongs to one publisher. */
  readonly leaseUntil: number;
  /** Failures of its own so far; a failing bus is not counted. */
  readonly attempts: number;
  /** The EventBridge `source`. */
  readonly source: string;
  /** The EventBridge `detail-type`. */
  readonly type: string;
  /** The envelope as JSON: the EventBridge `detail`, byte for byte. */
  readonly envelope: string;
  /** An X-Ray trace header, carried along. */
  readonly traceId?: string | undefined;
  /** What its last failure said. */
  readonly lastError?: string | undefined;
  /** The same for failures of one cause. */
  readonly fingerprint?: string | undefined;
  /** When it was published, epoch milliseconds. */
  readonly publishedAt?: number | undefined;
  /** Which path published it: the stream or the sweep. */
  readonly publishedBy?: string | undefined;
  /** When it became DEAD, epoch milliseconds. */
  readonly deadAt?: number | undefined;
  /** When an operator last sent it again to one of its consumers, epoch milliseconds. */
  readonly resentAt?: number | undefined;
  /** Who requeued it last, when, and why. */
  readonly requeuedBy?: string | undefined;
  /** When it was requeued last, epoch milliseconds. */
  readonly requeuedAt?: number | undefined;
  /** Why it was requeued last. */
  readonly requeuedReason?: string | undefined;
  /** Who gave it up for good, when, and why. */
  readonly discardedBy?: string | undefined;
  /** When it was given up for good, epoch milliseconds. */
  readonly discardedAt?: number | undefined;
  /** Why it was given up for good. */
  readonly discardedReason?: string | undefined;
  /** From when on TTL may delete it, epoch seconds; absent while it is PENDING or DEAD. */
  readonly expiresAt?: number | undefined;
}

/** Points at a DEAD outbox row: `DEAD#<shard>` / `<eventId>`. Written and removed together with that state. */
export interface DeadPointer extends Key {
  readonly schema: number;
  readonly deadAt: number;
  readonly type: string;
  readonly lastError: string;
  readonly fingerprint: string;
}

/** Says that a minute of a shard may still hold PENDING rows: `SWEEP#<shard>` / `<minute>`. */
export interface UnsettledPointer extends Key {
  readonly schema: number;
  /** Fresh at every put; the pointer is removed only under the token that was read before the minute was found clean. */
  readonly token: string;
}

/** How far the sweep has come: `SWEEP` / `STATE`. */
export interface SweepState extends Key {
  readonly schema: number;
  /** The `now` that the last whole pass (or step of a long one) started with. Moves only forward; absent before the first. */
  readonly sweptTo?: number | undefined;
  /** The highest number of shards ever used. */
  readonly shards?: number | undefined;
}

/** Where an inbox row stands. `DISCARDED` is an operator's end of a rejected message. */
export type InboxStatus = 'PROCESSING' | 'PROCESSED' | 'FAILED' | 'REJECTED' | 'DISCARDED';

/** A message as one consumer sees it: `INBOX#<consumer>#<eventId>` / `MESSAGE`. */
export interface InboxRow extends Key {
  readonly schema: number;
  readonly status: InboxStatus;
  /** The random token of the claim that holds, or last held, the message. */
  readonly fence: string;
  /** Until when the claim holds unless renewed. */
  readonly leaseUntil?: number | undefined;
  /** When the function that claimed it is stopped at the latest. */
  readonly endsBy?: number | undefined;
  /** The number of the attempt that runs, or ran last, since the last redrive. */
  readonly attempts: number;
  /** How many claims in a row ended without a result: the function died, or its time was up. Absent: none. */
  readonly unfinished?: number | undefined;
  /** Whether the claim that holds the message ran out of time. Absent: no. */
  readonly outOfTime?: boolean | undefined;
  readonly type?: string | undefined;
  readonly claimedAt?: number | undefined;
  readonly processedAt?: number | undefined;
  /** What the handler returned, as JSON. */
  readonly result?: string | undefined;
  /** The commit that set it PROCESSED, where one did: tells it from another try of the same claim. */
  readonly commitId?: string | undefined;
  readonly lastError?: string | undefined;
  readonly fingerprint?: string | undefined;
  /** When a FAILED message is shown again, epoch milliseconds. */
  readonly retryAt?: number | undefined;
  /** Why it was rejected: an error code, e.g. `INVALID_PAYLOAD`. */
  readonly reason?: string | undefined;
  readonly rejectedAt?: number | undefined;
  /** SQS message ids under which it was rejected: a set. Another id is a redrive and is let in. */
  readonly rejectedIds?: ReadonlySet<string> | undefined;
  /** Set by an operator who lets a message run although it is older than the inbox retention. */
  readonly runAnyway?: boolean | undefined;
  /** Who let it, when, and why. */
  readonly allowedBy?: string | undefined;
  readonly allowedAt?: number | undefined;
  readonly allowedReason?: string | undefined;
  /** Who set it PROCESSED without running it, and why: an operator's resolve. */
  readonly resolvedBy?: string | undefined;
  readonly resolvedReason?: string | undefined;
  /** Who gave it up for good, when, and why. */
  readonly discardedBy?: string | undefined;
  readonly discardedAt?: number | undefined;
  readonly discardedReason?: string | undefined;
  readonly expiresAt?: number | undefined;
}

/**
 * How long a consumer's inbox has kept its rows, and since when: `INBOX#<consumer>#HISTORY` / `HISTORY`. One item a consumer,
 * which never expires; event ids are UUIDs, so that no message has its key.
 */
export interface InboxHistory extends Key {
  readonly schema: number;
  /** Oldest first; each was in force until the next one. */
  readonly retentions: readonly {
    readonly days: number;
    /** Epoch milliseconds. */
    readonly since: number;
  }[];
  /** When it was last written, epoch milliseconds. Only grows: a write demands the value that was read. */
  readonly changedAt: number;
}

/** Points at a REJECTED inbox row: `REJECTED#<consumer>` / `<eventId>`. Written and removed together with that state. */
export interface RejectedPointer extends Key {
  readonly schema: number;
  readonly rejectedAt: number;
  readonly reason: string;
  readonly lastError: string;
  readonly fingerprint: string;
  /** When SQS took the message: its dead letter is deleted for ever the queue's retention after this. Epoch milliseconds. */
  readonly sentAt?: number | undefined;
}

/**
 * Says that a message may be FAILED: `FAILED#<consumer>` / `<eventId>`. Only a hint, so that failures can be listed without
 * an index: written after the row, removed when the message is processed, both without a promise. The row decides.
 */
export interface FailedHint extends Key {
  readonly schema: number;
  readonly failedAt: number;
  readonly expiresAt: number;
}

/** What an operator changed: `OPERATIONS#<month>` / `<time>#<token>`. Kept for 400 days. */
export interface OperationRow extends Key {
  readonly schema: number;
  /** Epoch milliseconds. */
  readonly at: number;
  /** Who: the ARN of the caller. */
  readonly by: string;
  /** What, e.g. `message resolve`. */
  readonly command: string;
  /** To what: an event id, a consumer and an event id, a place and how many letters. */
  readonly subject: string;
  readonly reason: string;
  readonly expiresAt: number;
}

/** Where a side effect stands. `RELEASED`: the attempt failed, it may be run again. */
export type EffectStatus = 'IN_PROGRESS' | 'COMPLETED' | 'RELEASED';

/** A side effect of a handler: `INBOX#<consumer>#<eventId>` / `EFFECT#<name>`. */
export interface EffectRow extends Key {
  readonly schema: number;
  readonly status: EffectStatus;
  /** The fence of the claim that started it. */
  readonly fence: string;
  /** Which `ctx.once` call of that claim started it, from 1. With the fence it names one call: only that call may finish it. */
  readonly run: number;
  /** When the function that started it is stopped at the latest: until then it may still be running. */
  readonly endsBy: number;
  readonly startedAt: number;
  readonly completedAt?: number | undefined;
  /** What the effect returned, as JSON; absent when it returned nothing. */
  readonly result?: string | undefined;
  readonly expiresAt?: number | undefined;
}

/** The key of an event's outbox row. */
export function outboxKey(minute: string, shard: number, eventId: string): Key {
  return { PK: `${OUTBOX_PREFIX}${minute}#${shardText(shard)}`, SK: `EVENT#${eventId}` };
}

/** The partition of one minute of one shard. */
export function outboxPartition(minute: string, shard: number): string {
  return `${OUTBOX_PREFIX}${minute}#${shardText(shard)}`;
}

/** The key of a DEAD event's pointer. */
export function deadKey(shard: number, eventId: string): Key {
  return { PK: `DEAD#${shardText(shard)}`, SK: eventId };
}

/** The key of an unsettled minute's pointer. */
export function unsettledKey(shard: number, minute: string): Key {
  return { PK: `SWEEP#${shardText(shard)}`, SK: minute };
}

/** The key of the sweep's state. */
export const SWEEP_STATE_KEY: Key = { PK: 'SWEEP', SK: 'STATE' };

/** The key of a message's inbox row. */
export function inboxKey(consumer: string, eventId: string): Key {
  return { PK: `${INBOX_PREFIX}${consumer}#${eventId}`, SK: 'MESSAGE' };
}

/** The key of the history of a consumer's inbox. */
export function inboxHistoryKey(consumer: string): Key {
  return { PK: `${INBOX_PREFIX}${consumer}#${HISTORY}`, SK: HISTORY };
}

/** The key of a rejected message's pointer. */
export function rejectedKey(consumer: string, eventId: string): Key {
  return { PK: `REJECTED#${consumer}`, SK: eventId };
}

/** The key of a failed message's hint. */
export function failedKey(consumer: string, eventId: string): Key {
  return { PK: `FAILED#${consumer}`, SK: eventId };
}

/** The key of an operation: by month, in order of time. */
export function operationKey(at: number, token: string): Key {
  const time = new Date(at).toISOString();
  return { PK: `OPERATIONS#${time.slice(0, 7)}`, SK: `${time}#${token}` };
}

/** The key of a side effect. */
export function effectKey(consumer: string, eventId: string, name: string): Key {
  return { PK: `${INBOX_PREFIX}${consumer}#${eventId}`, SK: `${EFFECT_PREFIX}${name}` };
}

/** Two decimal digits or three: the shard as it stands in keys. */
function shardText(shard: number): string {
  return String(shard).padStart(2, '0');
}

/** Views an item that Mailroom wrote as the row it is. */
export function asRow<R extends Key>(item: Item): R {
  return item as unknown as R;
}
