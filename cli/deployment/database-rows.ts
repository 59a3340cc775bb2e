import { MINUTE_MS } from '../../lambdas/runtime/base/units.ts';
import type { StoredEventRow } from '../../lambdas/runtime/operations/outbox-rows.ts';
import type { RejectedPointer } from '../../lambdas/runtime/store/inbox-row.ts';
import type { LastSequence } from '../../lambdas/runtime/store/last-sequence.ts';
import type { OperationRow } from '../../lambdas/runtime/store/operation-record.ts';
import type { DeadPointer } from '../../lambdas/runtime/store/outbox-row.ts';
import {
  databaseMailroomRows,
  lastIdAt,
  type MailroomReads,
} from '../../lambdas/runtime/store/sql/mailroom-rows.ts';
import type { MessageColumns } from '../../lambdas/runtime/store/sql/message-columns.ts';
import { readable, type UnreadableRow } from '../../lambdas/runtime/store/stored-rows.ts';
import { isNotDue, type PartialList } from './rows-reader.ts';
import type { CaptureConnector, StoredRows, TimeRange } from './stored-rows.ts';

/** The most rows of a list without another limit. */
const LIST_MAX = 10_000;

/** The reads of one kind of database by which the command lists rows. @param limit - `null`: all */
export interface ListReads extends MailroomReads {
  /** Reads the events in the queue up to an id, in the order of their ids. */
  pending(lastId: string, limit: number | null): Promise<StoredEventRow[]>;
  /** Reads a consumer's FAILED and PROCESSING messages, in the order of their ids. */
  openMessages(consumer: string, limit: number | null): Promise<MessageColumns[]>;
  /** Reads the FAILED, PROCESSING and REJECTED messages of a consumer whose ids begin with a text. */
  idsFrom(consumer: string, prefix: string, limit: number): Promise<string[]>;
  /** Reads the last applied sequence of an aggregate at its consumer, by its key. */
  lastSequence(key: string): Promise<LastSequence>;
  dead(limit: number | null): Promise<(DeadPointer | UnreadableRow)[]>;
  rejected(consumer: string, limit: number | null): Promise<(RejectedPointer | UnreadableRow)[]>;
  /** Reads operators' changes, in the order of their times. */
  operations(range: TimeRange, limit: number): Promise<(OperationRow | UnreadableRow)[]>;
  /** Reads the connectors of change data capture, by their names. */
  connectors(): Promise<readonly CaptureConnector[]>;
  /** When the schema was created, epoch milliseconds. */
  createdAt(): Promise<number>;
}

/** The rows of a Mailroom in a database. */
export function databaseRows(reads: ListReads): StoredRows {
  const { outbox, inbox } = databaseMailroomRows(reads);
  const message = async (consumer: string, eventId: string) =>
    (await reads.messages([{ consumer, eventId }]))[0];
  return {
    outbox: {
      ...outbox,
      pending: async (_sweep, now) => {
        // A producer's clock may be ahead; a scheduled event has the id of its due time.
        const until = lastIdAt(now + MINUTE_MS);
        const { items, more } = partOf(await reads.pending(until, limitOf(LIST_MAX)), LIST_MAX);
        const due = items.filter((event) => !isNotDue(event, now));
        return { items: due.map((event) => ({ ...event, envelope: '' })), more };
      },
    },
    inbox: {
      ...inbox,
      hinted: async (consumer, max) => {
        const { items, more } = partOf(await reads.openMessages(consumer, limitOf(max)), max);
        return {
          items: items.map(({ eventId, changedAt: failedAt, row }) => ({ eventId, failedAt, row })),
          more,
        };
      },
      lastSequence: reads.lastSequence,
      failedAt: async (consumer, eventId) => (await message(consumer, eventId))?.changedAt,
      idsFrom: reads.idsFrom,
    },
    deadLetters: {
      dead: async (_shards, max) => partOf(await reads.dead(limitOf(max)), max),
      rejected: async (consumer, max) => partOf(await reads.rejected(consumer, limitOf(max)), max),
      isRejected: async (consumer, eventId) =>
        readable((await message(consumer, eventId))?.row)?.status === 'REJECTED',
    },
    operations: {
      between: async (range) => partOf(await reads.operations(range, LIST_MAX + 1), LIST_MAX),
    },
    connectors: reads.connectors,
    createdAt: reads.createdAt,
  };
}

/** One more than wanted shows that there is more. */
function limitOf(max: number): number | null {
  return Number.isFinite(max) ? max + 1 : null;
}

function partOf<R>(found: readonly R[], max: number): PartialList<R> {
  return { items: found.slice(0, max), more: found.length > max };
}
