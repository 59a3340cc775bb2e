import type { InboxRows, StoredMessageRow } from '../../lambdas/runtime/operations/inbox-rows.ts';
import type { OutboxRows, StoredEventRow } from '../../lambdas/runtime/operations/outbox-rows.ts';
import type { RejectedPointer } from '../../lambdas/runtime/store/inbox-row.ts';
import type { LastSequence } from '../../lambdas/runtime/store/last-sequence.ts';
import type { OperationRow } from '../../lambdas/runtime/store/operation-record.ts';
import type { DeadPointer } from '../../lambdas/runtime/store/outbox-row.ts';
import type { UnreadableRow } from '../../lambdas/runtime/store/stored-rows.ts';
import type { PartialList, SweepReading } from './rows-reader.ts';

/** A message that may wait for its next attempt, and its row. */
interface HintedMessage {
  readonly eventId: string;
  /** When it failed, epoch milliseconds; absent if that cannot be read. */
  readonly failedAt: number | undefined;
  readonly row: StoredMessageRow | undefined;
}

/** A range of time, epoch milliseconds. */
export interface TimeRange {
  readonly since: number;
  readonly until: number;
}

/** Reads the dead letters that have rows: DEAD events and rejected messages. */
interface DeadLetterRows {
  /** Reads the DEAD events, by their ids. @param max - at most this many of each shard */
  dead(shards: readonly number[], max: number): Promise<PartialList<DeadPointer | UnreadableRow>>;
  /** Reads a consumer's rejected messages, by their event ids. */
  rejected(consumer: string, max: number): Promise<PartialList<RejectedPointer | UnreadableRow>>;
  /** True if a message is listed as rejected. The read sees every earlier write. */
  isRejected(consumer: string, eventId: string): Promise<boolean>;
}

/** A connector of change data capture, as its database knows it. Times are epoch milliseconds. */
export interface CaptureConnector {
  readonly name: string;
  /** The time for which events stay that are left to it. */
  readonly retentionMs: number;
  /** Up to when it has confirmed the log of PostgreSQL; `undefined` before it has, and in MySQL, which does not know that. */
  readonly readUntil: number | undefined;
  /** Its last heartbeat in MySQL; `undefined` in PostgreSQL, and if it is in the future, of a clock that was ahead. */
  readonly beatAt: number | undefined;
}

/**
 * The rows of a Mailroom, as the command reads them: `dynamoRows` in its table, `postgresRows` and `mysqlRows` in a database,
 * and `combinedRows` in both.
 */
export interface StoredRows {
  readonly outbox: OutboxRows & {
    /**
     * Reads the PENDING events that are due, without their envelopes.
     *
     * @param sweep - where the sweep has been; `sweptAt`: the time of its last complete pass, or of the table's creation before the first
     */
    pending(
      sweep: Pick<SweepReading, 'shards'> & { readonly sweptAt: number },
      now: number,
    ): Promise<PartialList<StoredEventRow>>;
  };
  readonly inbox: InboxRows & {
    /** Reads a consumer's messages that may wait for their next attempt, by their event ids. @param max - at most this many hints are looked at */
    hinted(consumer: string, max: number): Promise<PartialList<HintedMessage>>;
    /** Reads the last applied sequence of an aggregate at its consumer, by its key. The read sees every earlier write. */
    lastSequence(key: string): Promise<LastSequence>;
    /** When a message failed, epoch milliseconds; `undefined` if that is not known. */
    failedAt(consumer: string, eventId: string): Promise<number | undefined>;
    /** Reads the ids of rejected and failed messages that begin with a text. @param max - at most this many of each kind */
    idsFrom(consumer: string, prefix: string, max: number): Promise<string[]>;
  };
  readonly deadLetters: DeadLetterRows;
  readonly operations: {
    /** Reads the records of operators' changes in a range of time. */
    between(range: TimeRange): Promise<PartialList<OperationRow | UnreadableRow>>;
  };
  /** Reads the connectors of change data capture, by their names; none in DynamoDB. */
  connectors(): Promise<readonly CaptureConnector[]>;
  /** When the storage was created, epoch milliseconds. */
  createdAt(): Promise<number>;
}
