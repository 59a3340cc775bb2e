import type { EffectState, StoredEffect } from './stored-effect.ts';
import type { Key } from './table.ts';

/** The state of an inbox row. `DISCARDED`: an operator discarded a rejected message, or it was stale. */
export type InboxStatus = 'PROCESSING' | 'PROCESSED' | 'FAILED' | 'REJECTED' | 'DISCARDED';

/**
 * A message at one consumer: `INBOX#<consumer>#<eventId>` / `MESSAGE`. Its state decides which attributes it has. Of these, only
 * `fence` and `attempts` are certain: the inbox acts on a row without any other, so every reader must.
 */
export type InboxRow = ProcessingRow | FailedRow | RejectedRow | ProcessedRow | DiscardedRow;

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

/** The row of a message that never runs: an operator discarded it after its rejection, or its consumer because it was stale. */
export interface DiscardedRow extends MessageRow<'DISCARDED'> {
  /** `STALE`: it had waited for longer than its handler takes. Absent: an operator discarded it. */
  readonly reason?: string | undefined;
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

/** The end of an attempt that did not succeed. */
export interface AttemptEnd {
  /** Epoch milliseconds; of an attempt without a result, the end of its lease. */
  readonly at: number;
  /** Its number; a redrive starts again at 1. */
  readonly attempt: number;
  /**
   * `failed`: its handler threw, or its time was up; `rejected`: so that the message can never succeed; `released`: it is not counted;
   * `no-result`: its function stopped, or ran out of time, before its handler ended; `waited`: its handler asked for a wait, or its limit had no token, and it is not counted.
   */
  readonly ended: 'failed' | 'rejected' | 'released' | 'no-result' | 'waited';
  /** Of consecutive waits, which are one entry. */
  readonly wait?: AskedWait | undefined;
  /** At most 120 characters. */
  readonly error?: string | undefined;
  /** The side effects that it ran, and how each ended. Absent: none, or too many to keep. */
  readonly effects?: Readonly<Record<string, EffectState>> | undefined;
}

/** The waits that a handler has asked for since its message arrived, or consecutive ones for its limit. */
export interface AskedWait {
  /** The time of the first one, epoch milliseconds. */
  readonly since: number;
  /** Their number. */
  readonly times: number;
  /** The limit for which the message waited. Absent: its handler asked for the wait. */
  readonly limit?: LimitWait | undefined;
}

/** A wait for a limit. */
export interface LimitWait {
  /** Its name, or the type of the event whose handler has it. */
  readonly name: string;
  /** The key of its bucket; at most 120 characters. */
  readonly key: string;
  /** The message's slot, epoch milliseconds. Absent: it has none, and asks again. */
  readonly slotAt?: number | undefined;
}

/** The bucket of one key of a limit: `LIMIT#<consumer>#<source>#<type>#<key>`, or `LIMIT##<name>#<key>`, / `LIMIT`. */
export interface LimitRow extends Key, LimitPlaces {
  readonly schema: number;
  /** The time of the next token, epoch milliseconds. Only increases. Absent: the bucket is full. */
  readonly nextAt?: number | undefined;
  /** The slot of the next message that must wait, epoch milliseconds. Only increases. Absent: none has waited. */
  readonly lineUntil?: number | undefined;
  /** The rate of the worker that wrote it last: the time in which a token returns, and in which all but one do, milliseconds. Absent: none. */
  readonly everyMs?: number | undefined;
  readonly burstMs?: number | undefined;
  /** The concurrency of the worker that wrote it last. Absent: none, and those of {@link LimitPlaces} are absent, too. */
  readonly concurrency?: number | undefined;
  readonly expiresAt: number;
}

/** The attributes of a bucket whose limit has a concurrency. See `inbox/limit-places.ts`. */
export interface LimitPlaces {
  /** The runs that hold a place: `<end>/<fence>`, where the end is in epoch milliseconds. Absent: none. */
  readonly holders?: ReadonlySet<string> | undefined;
  /** The head of the line: `<consumer>#<event id>`. */
  readonly head?: string | undefined;
  /** The time since which the head has waited, epoch milliseconds. */
  readonly headSince?: number | undefined;
  /** The time at which it became the head, epoch milliseconds. */
  readonly headAt?: number | undefined;
  /** The time until which a place is kept for it, epoch milliseconds. */
  readonly headUntil?: number | undefined;
  /** An estimate of the length of a run, milliseconds: the slots of the line are as far apart as places become free by it. */
  readonly runMs?: number | undefined;
}

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
