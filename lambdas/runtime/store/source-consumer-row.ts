import type { Key } from './table.ts';

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
