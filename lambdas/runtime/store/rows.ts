import type { Item, Key } from './table.ts';

/**
 * The stored shape: every kind of item in the Mailroom table, with its key and attributes. All times are epoch milliseconds,
 * except `expiresAt`, which is in seconds because DynamoDB's TTL requires it.
 */

/** The version of the stored shape, in every item. Increase it when a shape changes, and document how old rows are read. */
export const SCHEMA = 1;

/**
 * Returns true if this version supports a row's schema. Every version writes its schema, so a row without one was not written by a
 * newer version.
 *
 * @param schema - the row's attribute, as it was read
 */
export function isKnownSchema(schema: unknown): boolean {
  if (schema === undefined) return true;
  return typeof schema === 'number' && Number.isSafeInteger(schema) && schema >= 1 && schema <= SCHEMA;
}

/** The TTL attribute, epoch **seconds**. Only on rows that need no further work. */
export const EXPIRES_AT = 'expiresAt';

const DAY_S = 86_400;

/** Returns the TTL value of a row that may be deleted `days` days after `now`. */
export function expiresAt(now: number, days: number): number {
  return Math.ceil(now / 1_000) + days * DAY_S;
}

/** The state of an outbox row: see the state diagram in docs/concepts.md. `DISCARDED`: an operator discarded a DEAD event. `CANCELLED`: its producer cancelled a scheduled event. */
export type OutboxStatus = 'PENDING' | 'PUBLISHED' | 'DEAD' | 'DISCARDED' | 'CANCELLED';

/** An event in the outbox: `OUTBOX#<minute>#<shard>` / `EVENT#<eventId>`. */
export interface OutboxRow extends Key {
  /** The version of the row's shape. */
  readonly schema: number;
  /** The state of the row. */
  readonly status: OutboxStatus;
  /** The end of the lease under which one publisher holds a PENDING row, epoch milliseconds. */
  readonly leaseUntil: number;
  /**
   * The end of its producer's turn to publish it, epoch milliseconds. Until then, and a clock margin, no relay claims it. Absent
   * unless its producer publishes at once.
   */
  readonly producerUntil?: number | undefined;
  /** The time before which it is not published, epoch milliseconds: that of its event id. Absent unless the event is scheduled. */
  readonly dueAt?: number | undefined;
  /** The time at which a scheduled event was created, epoch milliseconds. */
  readonly scheduledAt?: number | undefined;
  /** The number of its own failures so far; failures of the bus are not counted. */
  readonly attempts: number;
  /** The EventBridge `source`. */
  readonly source: string;
  /** The EventBridge `detail-type`. */
  readonly type: string;
  /** The envelope as JSON: the EventBridge `detail`, byte for byte. */
  readonly envelope: string;
  /** An X-Ray trace header, passed on unchanged. */
  readonly traceId?: string | undefined;
  /** The message of its last failure. */
  readonly lastError?: string | undefined;
  /** Identical for failures with the same cause. */
  readonly fingerprint?: string | undefined;
  /** The time of the publish, epoch milliseconds. */
  readonly publishedAt?: number | undefined;
  /** Its publisher: `producer`, `stream` or `sweep`. */
  readonly publishedBy?: string | undefined;
  /** The time at which it became DEAD, epoch milliseconds. */
  readonly deadAt?: number | undefined;
  /** The time at which an operator last sent it again to one of its consumers, epoch milliseconds. */
  readonly resentAt?: number | undefined;
  /** The operator who last requeued it. */
  readonly requeuedBy?: string | undefined;
  /** The time at which it was last requeued, epoch milliseconds. */
  readonly requeuedAt?: number | undefined;
  /** The reason for the last requeue. */
  readonly requeuedReason?: string | undefined;
  /** The operator who discarded it. */
  readonly discardedBy?: string | undefined;
  /** The time at which it was discarded, epoch milliseconds. */
  readonly discardedAt?: number | undefined;
  /** The reason for discarding it. */
  readonly discardedReason?: string | undefined;
  /** The service that cancelled it. */
  readonly cancelledBy?: string | undefined;
  /** The time at which it was cancelled, epoch milliseconds. */
  readonly cancelledAt?: number | undefined;
  /** The time from which TTL may delete it, epoch seconds; absent while it is PENDING or DEAD. */
  readonly expiresAt?: number | undefined;
}

/** A pointer to a DEAD outbox row: `DEAD#<shard>` / `<eventId>`. Written and removed together with that state. */
export interface DeadPointer extends Key {
  readonly schema: number;
  readonly deadAt: number;
  readonly type: string;
  readonly lastError: string;
  readonly fingerprint: string;
}

/** A pointer to a minute of a shard that may still hold PENDING rows: `SWEEP#<shard>` / `<minute>`. */
export interface UnsettledPointer extends Key {
  readonly schema: number;
  /** New on each put; the pointer is removed only under the token that was read before the minute was found clean. */
  readonly token: string;
  /** The sort key up to which a walk of several passes has read the minute. Absent: the next pass starts at its beginning. */
  readonly after?: string | undefined;
  /** The rows that this walk has left PENDING up to there. Absent: none. */
  readonly left?: LeftPending | undefined;
}

/** Rows that the sweep left PENDING in one minute of one shard. */
export interface LeftPending {
  /** The number of rows left PENDING. */
  readonly rows: number;
  /** Those with an undeclared source: they have their own alarm and would only hide the age of the others. */
  readonly undeclared: number;
  /** Those that are not due yet: scheduled events of a minute that was read before its end. They only keep it unsettled. Absent: none. */
  readonly early?: number | undefined;
  /** The time at which the oldest of the others was created, epoch milliseconds. Absent: there are no others. */
  readonly oldest?: number | undefined;
  /** The earliest end of the leases under which this pass leaves the rows, epoch milliseconds. Absent: it served all of them. */
  readonly leaseUntil?: number | undefined;
}

/** The progress of the sweep: `SWEEP` / `STATE`. */
export interface SweepState extends Key {
  readonly schema: number;
  /** The start of the last complete pass, or step of a long one. Only moves forward; absent before the first. */
  readonly sweptTo?: number | undefined;
  /** The highest number of shards ever used. */
  readonly shards?: number | undefined;
}

/** The last heartbeats: `MAILROOM#HEARTBEAT` / `STATE`. */
export interface HeartbeatState extends Key {
  readonly schema: number;
  /** The event id of the last heartbeat. */
  readonly latest: string;
  /** The event id of the heartbeat before it. Absent: there was none. */
  readonly previous?: string | undefined;
}

/**
 * A consumer of another source than SQS, in the place of a directory entry: `MAILROOM#SOURCES` / its name. It is written when the consumer
 * starts and daily while it runs, so that one that was removed disappears.
 */
export interface SourceConsumerRow extends Key {
  readonly schema: number;
  /** The `source` of the events that its handlers write. */
  readonly service: string;
  /** The source of its messages, e.g. `Kafka`. */
  readonly from: string;
  /** As in a directory entry: the fields that identify an external event, and whether an event has a number. */
  readonly events: readonly {
    readonly source: string;
    readonly type: string;
    readonly external?: { readonly id: readonly string[] } | undefined;
    readonly sequence?: boolean | undefined;
  }[];
  /** As `orderText` writes it. Absent: none. */
  readonly order?: string | undefined;
  readonly maxAttempts: number;
  readonly inboxRetentionDays: number;
  /** The time of the last start, or of the day's renewal, epoch milliseconds. */
  readonly seenAt: number;
  /** Epoch seconds: an inbox retention and a day after `seenAt`, when its rows have expired as well. */
  readonly expiresAt: number;
}

/** The state of an inbox row. `DISCARDED`: an operator discarded a rejected message. */
export type InboxStatus = 'PROCESSING' | 'PROCESSED' | 'FAILED' | 'REJECTED' | 'DISCARDED';

/** The attributes of an inbox row in every state. */
interface MessageRow<Status extends InboxStatus> extends Key {
  readonly schema: number;
  readonly status: Status;
  /** The random token of the claim that holds, or last held, the message. */
  readonly fence: string;
  /** The number of the current or last attempt, since the last redrive. */
  readonly attempts: number;
  readonly type?: string | undefined;
  /** The time of the last claim, epoch milliseconds. */
  readonly claimedAt?: number | undefined;
  /** The side effects of its handler by name, from the first claim on; at most 64. No transition except their own changes them. */
  readonly effects?: Readonly<Record<string, StoredEffect>> | undefined;
  /** The error of the last attempt that failed. */
  readonly lastError?: string | undefined;
  /** Identical for failures with the same cause, and for a rejection after the last of them. */
  readonly fingerprint?: string | undefined;
  /** The last attempts that did not succeed, oldest first; about 2 KB. Absent: none. No transition except a claim's own changes them. */
  readonly pastAttempts?: readonly AttemptEnd[] | undefined;
  /** The set of SQS message ids under which it was rejected. Another id means a redrive, and is admitted. */
  readonly rejectedIds?: ReadonlySet<string> | undefined;
  /** Set by an operator who allows a message to run although it is older than the inbox retention. */
  readonly runAnyway?: boolean | undefined;
  /** Absent unless its consumer is ordered. */
  readonly order?: PlaceInOrder | undefined;
  /** The operator who allowed it. */
  readonly allowedBy?: string | undefined;
  readonly allowedAt?: number | undefined;
  readonly allowedReason?: string | undefined;
}

/** The place of a message's event in the order of its consumer. */
export interface PlaceInOrder {
  /** The partition key of the sequence's {@link LastRow}. */
  readonly key: string;
  readonly mode: 'latest' | 'strict';
  /** The event's own number. */
  readonly sequence: number;
}

/** The attributes of the row of a message that a worker holds or may claim. */
interface UnsettledRow<Status extends InboxStatus> extends MessageRow<Status> {
  /** The number of consecutive claims without a result: the function died, or its time was up. Absent: none. */
  readonly unfinished?: number | undefined;
}

/** The row of a message that a worker holds, or was the last to hold. */
export interface ProcessingRow extends UnsettledRow<'PROCESSING'> {
  /** The end of the claim's lease unless renewed, epoch milliseconds. Absent only if it was removed by hand. */
  readonly leaseUntil?: number | undefined;
  /** The latest time at which the claiming function is stopped, epoch milliseconds. */
  readonly endsBy?: number | undefined;
  /** The claim that holds the message ran out of time. Absent: it has not. */
  readonly outOfTime?: boolean | undefined;
}

/** The row of a message whose last attempt failed, or was released. */
export interface FailedRow extends UnsettledRow<'FAILED'> {
  /** The time at which the message becomes visible again, epoch milliseconds. */
  readonly retryAt?: number | undefined;
}

/** The row of a message that can never succeed. */
export interface RejectedRow extends MessageRow<'REJECTED'> {
  /** The reason for the rejection: an error code, e.g. `INVALID_PAYLOAD`. */
  readonly reason?: string | undefined;
  readonly rejectedAt?: number | undefined;
  /** The time from which TTL may delete it, epoch seconds. Only for a message whose event could not be read. */
  readonly expiresAt?: number | undefined;
}

/** The row of a message whose work is done. */
export interface ProcessedRow extends MessageRow<'PROCESSED'> {
  readonly processedAt?: number | undefined;
  /** The handler's return value, as JSON. */
  readonly result?: string | undefined;
  /** The commit that set it PROCESSED, if one did; distinguishes it from another try of the same claim, or names an operator's fix. */
  readonly commitId?: string | undefined;
  /** The last applied sequence that superseded it: its handler did not run. */
  readonly supersededBy?: number | undefined;
  /** The operator who resolved it: it was set PROCESSED without being run. */
  readonly resolvedBy?: string | undefined;
  readonly resolvedReason?: string | undefined;
  /** The time from which TTL may delete it, epoch seconds. */
  readonly expiresAt?: number | undefined;
}

/** The row of a rejected message that an operator discarded. */
export interface DiscardedRow extends MessageRow<'DISCARDED'> {
  /** Present if its handler's `rejected` function committed with it. */
  readonly commitId?: string | undefined;
  readonly discardedAt?: number | undefined;
  readonly discardedBy?: string | undefined;
  readonly discardedReason?: string | undefined;
  /** The event that was sent in its place, with other data. Absent: none. */
  readonly replacedBy?: string | undefined;
  /** The time from which TTL may delete it, epoch seconds. */
  readonly expiresAt?: number | undefined;
}

/**
 * A message at one consumer: `INBOX#<consumer>#<eventId>` / `MESSAGE`. Its state decides which attributes it has. Of these, only
 * `fence` and `attempts` are certain: the inbox acts on a row without any other, so every reader must.
 */
export type InboxRow = ProcessingRow | FailedRow | RejectedRow | ProcessedRow | DiscardedRow;

/** The last applied sequence of an aggregate: `LAST#<consumer>#<source>#<group>#<aggregateType>#<aggregateId>` / `LAST`. It never expires. */
export interface LastRow extends Key {
  readonly schema: number;
  /** Only increases. */
  readonly last: number;
  /** The time of the last write, epoch milliseconds. */
  readonly at: number;
  /** The event that was applied last. Absent if an operator set the number. */
  readonly eventId?: string | undefined;
}

/**
 * The retentions of a consumer's inbox over time: `INBOX#<consumer>#HISTORY` / `HISTORY`. One item per consumer, which never
 * expires; no message has this key, because event ids are UUIDs.
 */
export interface InboxHistory extends Key {
  readonly schema: number;
  /** Oldest first; each was in force until the next one. */
  readonly retentions: readonly {
    readonly days: number;
    /** Epoch milliseconds. */
    readonly since: number;
  }[];
  /** The time of the last write of `retentions`, epoch milliseconds. Only increases: a write is conditional on the value that was read. */
  readonly changedAt: number;
  /**
   * The marks of the unreadable messages that operators have settled: a message with one of them is looked up by its body before it
   * runs. At most 4,096, which take 16 KB. Absent: none.
   */
  readonly unreadableSettled?: ReadonlySet<string> | undefined;
}

/** A pointer to a REJECTED inbox row: `REJECTED#<consumer>` / `<eventId>`. Written and removed together with that state. */
export interface RejectedPointer extends Key {
  readonly schema: number;
  readonly rejectedAt: number;
  readonly reason: string;
  readonly lastError: string;
  readonly fingerprint: string;
  /** The time at which SQS received the message, epoch milliseconds; its dead letter is deleted one retention period later. */
  readonly sentAt?: number | undefined;
  /** The time from which TTL may delete it, epoch seconds. Only for a message whose event could not be read. */
  readonly expiresAt?: number | undefined;
}

/**
 * A hint that a message may be FAILED: `FAILED#<consumer>` / `<eventId>`. It lists failures without an index. It is written after
 * the row and removed when the message is processed, neither of which is guaranteed. The row decides.
 */
export interface FailedHint extends Key {
  readonly schema: number;
  readonly failedAt: number;
  readonly expiresAt: number;
}

/** The record of an operator's change: `OPERATIONS#<month>` / `<time>#<token>`. Kept for 400 days. */
export interface OperationRow extends Key {
  readonly schema: number;
  /** Epoch milliseconds. */
  readonly at: number;
  /** The ARN of the caller. */
  readonly by: string;
  /** The command, e.g. `messages resolve`. */
  readonly command: string;
  /**
   * The object of the change, for people: an event id, a consumer and an event id, or a dead-letter source and the number of dead
   * letters. Programs read the attributes below.
   */
  readonly subject: string;
  readonly reason: string;
  readonly expiresAt: number;
  /** The consumer of a pause, a resume and a resend. */
  readonly consumer?: string | undefined;
  /** The dead-letter source of a resend. */
  readonly source?: string | undefined;
  /** The event that a resend replaces. */
  readonly eventId?: string | undefined;
  /** The event that a resend sends in its place. */
  readonly newEventId?: string | undefined;
  /** The finding of `status` that is acknowledged, or no longer, e.g. `dead-letters/consumer:payments`. */
  readonly finding?: string | undefined;
  /** The end of an acknowledgement, epoch milliseconds. */
  readonly until?: number | undefined;
  /** The count above which a finding is not acknowledged. Absent: it has none. */
  readonly upTo?: number | undefined;
}

/** The state of a side effect. `RELEASED`: the attempt failed, and the effect may run again. */
export type EffectStatus = 'IN_PROGRESS' | 'COMPLETED' | 'RELEASED';

/** A side effect of a handler, in its message's inbox row. */
export interface StoredEffect {
  readonly status: EffectStatus;
  /** The fence of the claim that started it. */
  readonly fence: string;
  /** The number of the `ctx.once` call that started it, from 1; with the fence, it identifies the only call that may finish it. */
  readonly run: number;
  /** The latest time at which the function that started it is stopped: until then, it may still be running. */
  readonly endsBy: number;
  readonly startedAt: number;
  readonly completedAt?: number | undefined;
  /** The effect's return value, as JSON; absent if it returned nothing. */
  readonly result?: string | undefined;
  /** The time at which a RELEASED effect ended, epoch milliseconds. */
  readonly endedAt?: number | undefined;
  /** The error with which a RELEASED effect ended; at most 200 characters. */
  readonly error?: string | undefined;
  /** The error of a RELEASED effect said that nothing happened. Absent: it may have happened. */
  readonly nothingHappened?: boolean | undefined;
}

/**
 * The end of a side effect of a message, as far as its row shows. Only `nothing-happened` says that its provider did nothing:
 * `completed`: its result is stored; `failed`: it ended with an error, after which it may have happened; `running`: its function has not
 * certainly stopped; `unknown`: its function stopped and stored no result.
 */
export type EffectState = 'completed' | 'failed' | 'running' | 'unknown' | 'nothing-happened';

/** The end of an attempt that did not succeed. */
export interface AttemptEnd {
  /** Epoch milliseconds; of an attempt without a result, the end of its lease. */
  readonly at: number;
  /** Its number; a redrive starts again at 1. */
  readonly attempt: number;
  /**
   * `failed`: its handler threw, or its time was up; `rejected`: so that the message can never succeed; `released`: it is not counted;
   * `no-result`: its function stopped, or ran out of time, before its handler ended; `waited`: its handler asked for a wait, and it is not counted.
   */
  readonly ended: 'failed' | 'rejected' | 'released' | 'no-result' | 'waited';
  /** Of consecutive waits, which are one entry. */
  readonly wait?: AskedWait | undefined;
  /** At most 120 characters. */
  readonly error?: string | undefined;
  /** The side effects that it ran, and how each ended. Absent: none, or too many to keep. */
  readonly effects?: Readonly<Record<string, EffectState>> | undefined;
}

/** The waits that a handler has asked for since its message arrived. */
export interface AskedWait {
  /** The time of the first one, epoch milliseconds. */
  readonly since: number;
  /** Their number. */
  readonly times: number;
}

/** Views an item that Mailroom wrote as its row type. */
export function asRow<R extends Key>(item: Item): R {
  return item as unknown as R;
}
