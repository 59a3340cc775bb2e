import type { Key } from './table.ts';

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
  /** Its publisher: `producer`, `stream` or `sweep`; in PostgreSQL `relay`, or `cdc` for change data capture. */
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
