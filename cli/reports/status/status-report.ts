import type { Checked } from '../checks/check.ts';
import type { WaitGroup } from '../events/waits.ts';
import type { Warning } from './consumer-warnings.ts';
import type { HeartbeatStatus } from './heartbeat-status.ts';
import type { ScheduledStatus } from './scheduled-events.ts';
import type { SourceStatus } from './source-status.ts';
import type { WaitingKey } from './waiting-keys.ts';

/** A status. Its findings decide the state. */
export interface StatusReport extends StatusFacts {
  /** Everything was checked, and no action is required: `state` is `ok`. */
  readonly ok: boolean;
  /** `broken`: action is required. `look`: a consumer may be in trouble, or something could not be checked. */
  readonly state: 'ok' | 'look' | 'broken';
}

/** The readings of a status. Times are epoch milliseconds; absent values are `null`. */
export interface StatusFacts {
  readonly stack: string;
  readonly region: string;
  readonly at: number;
  /** The parts that are not as declared, and the checks that were not made. */
  readonly wiring: Checked;
  /** Consumers that may be in trouble. */
  readonly looks: readonly Warning[];
  /** The scheduled heartbeat; `null` without one. */
  readonly heartbeat: HeartbeatStatus | null;
  readonly outbox: {
    readonly pending: number;
    /** The longest time for which an event that a sweep publishes has been PENDING, milliseconds: since its commit or its last requeue; 0 if none is. */
    readonly oldestPendingMs: number;
    /** The time since the commit of the oldest of them, milliseconds: the range to sweep; 0 if none is PENDING. */
    readonly oldestCommittedMs: number;
    /** The pending events in a database, which its relay publishes and no sweep does. `pending` includes them, the ages above do not. */
    readonly inDatabase: {
      readonly pending: number;
      readonly oldestPendingMs: number;
      /** `null` for none. */
      readonly oldest: string | null;
    };
    readonly dead: number;
    /** Rows that cannot be read: PENDING ones, which `pending` and `oldestPendingMs` include, and those in the sample of the last hour. */
    readonly unreadable: number;
    /** PENDING events whose source no producer of this Mailroom declares. `pending` includes them, the ages do not. */
    readonly undeclared: number;
    /** The first of them, whose `why` tells what to do; `null` for none. */
    readonly firstUndeclared: string | null;
    /** Milliseconds since the sweep's last complete pass began; `null` before the first. */
    readonly sweptAgoMs: number | null;
    /** The same; before the first pass, milliseconds since the table was created. */
    readonly unsweptMs: number;
    /** The events that should be published by now, by the reason for which they wait. Those of `unreadable` and `undeclared` are not among them. */
    readonly stuck: readonly WaitGroup[];
    readonly scheduled: ScheduledStatus;
  };
  readonly consumers: Readonly<Record<string, ConsumerStatus>>;
  /** The consumers of other sources than SQS, whose queues are not read. */
  readonly sourceConsumers: Readonly<Record<string, SourceConsumerStatus>>;
  /** The keys of limits for which messages wait. The messages are not failed. */
  readonly limits: readonly WaitingKey[];
  readonly deadLetterSources: readonly SourceStatus[];
  /** URLs of queues in the directory that do not exist. They count as empty. */
  readonly gone: readonly string[];
  /** The counts that are lower bounds because reading stopped at a limit: e.g. `consumers.payments.failed`. */
  readonly atLeast: readonly string[];
}

/** The messages of a consumer of another source that failed or were rejected. */
interface SourceConsumerStatus extends Pick<ConsumerStatus, 'failed' | 'rejected' | 'unreadable'> {
  /** The source of its messages, e.g. `Kafka`. */
  readonly from: string;
  /** The time of its last start, or of the day's renewal of its entry, epoch milliseconds. */
  readonly seenAt: number;
}

/** The messages of one consumer that wait, failed or died. */
export interface ConsumerStatus {
  /** The target of a bridge; `null` for another consumer. */
  readonly forwardsTo: string | null;
  /** Messages in its queue that a receive can return now. */
  readonly queued: number;
  /** Messages in work, or hidden until their next attempt. */
  readonly inFlight: number;
  /** Messages in its queue: `queued + inFlight`. */
  readonly backlog: number;
  /** The time since the commit of its oldest unprocessed event, of the last hour's sample and its failed messages, milliseconds; 0 for none. */
  readonly oldestUnprocessedMs: number;
  /** Messages whose last attempt failed and that are retried. */
  readonly failed: number;
  /** Messages that are not retried. */
  readonly rejected: number;
  /** Messages whose row, pointer or hint cannot be read. */
  readonly unreadable: number;
  /** Messages of the last hour's sample that it discarded as stale. */
  readonly stale: number;
  /** Messages in its dead-letter queue. */
  readonly deadLetters: number;
}
