import type { DeadLetterQueue } from '../../lambdas/runtime/operations/dead-letters.ts';
import { readDeadLetter } from '../../lambdas/runtime/operations/dead-letters.ts';
import type { Directory } from '../../lambdas/runtime/operations/directory.ts';
import type { QueueMessage, Queues } from '../../lambdas/runtime/operations/queues.ts';
import { type DeadPointer, deadKey, type InboxRow } from '../../lambdas/runtime/store/rows.ts';
import {
  isUnreadable,
  readable,
  readDeadPointer,
  type UnreadableRow,
} from '../../lambdas/runtime/store/stored-rows.ts';
import type { Table } from '../../lambdas/runtime/store/table.ts';
import { readInbox } from '../reading/message-reader.ts';
import { unreadableText } from '../reading/row-text.ts';
import { eachOf, type PartialList, readPartition, readSweepState } from '../reading/rows-reader.ts';
import type { DeadLetterSource } from './sources.ts';

/** A message in a dead-letter queue, or a DEAD event. */
export interface DeadLetter {
  /** SQS's message id; of a DEAD event the event's id. */
  readonly id: string;
  readonly eventId: string | undefined;
  readonly type: string | undefined;
  /** When SQS took it for the first time, or the event went DEAD, epoch milliseconds; absent where its pointer cannot be read. */
  readonly sentAt: number | undefined;
  /** When it is permanently deleted, epoch milliseconds; DEAD events never are. */
  readonly expiresAt: number | undefined;
  /** The fingerprint of its cause: its row's; of a rule EventBridge's own error, of the stream the mapping's condition. */
  readonly fingerprint: string | undefined;
  /** Its row's last error, where it has one. */
  readonly lastError: string | undefined;
  /** As SQS handed it out. */
  readonly received?: QueueMessage | undefined;
  /** Its consumer's inbox row, as it was then. */
  readonly row?: InboxRow | UnreadableRow | undefined;
}

/** The dead letters of a source that could be received. */
export interface ReceivedDeadLetters {
  /** Oldest first. */
  readonly deadLetters: readonly DeadLetter[];
  /** How many there are in all; approximate, as SQS's counts are. */
  readonly total: number;
}

/** What dead letters are read with. */
export interface DeadLetterDeps {
  readonly directory: Directory;
  readonly table: Table;
  readonly queues: Queues;
}

/**
 * Receives the dead letters of a source. Those of a queue are hidden from others until they are put back.
 *
 * @param options.limit - at most this many
 * @param options.hideS - how long they stay hidden if they are not put back, seconds
 */
export async function receiveDeadLetters(
  deps: DeadLetterDeps,
  source: DeadLetterSource,
  options: { readonly limit: number; readonly hideS: number },
): Promise<ReceivedDeadLetters> {
  if (source.kind === 'dead') return deadEvents(deps, options.limit);
  const { retentionMs, waiting, inFlight } = await deps.queues.depth(source.url);
  const received = await deps.queues.receive(source.url, options);
  const deadLetters: DeadLetter[] = await eachOf(received, (message) =>
    explained(deps.table, source, message, retentionMs),
  );
  return { deadLetters, total: Math.max(deadLetters.length, waiting + inFlight) };
}

/** Makes received dead letters visible again. One that is deleted does no harm, and one that fails becomes visible when its time is up. */
export async function putBack(
  queues: Queues,
  source: DeadLetterSource,
  deadLetters: readonly DeadLetter[],
): Promise<void> {
  if (source.kind === 'dead') return;
  await eachOf(deadLetters, async ({ received }) => {
    if (received !== undefined) await queues.show(source.url, received).catch(() => {});
  });
}

/** The id of a message in the inbox: its event's, or one made of SQS's where no event can be read. */
export function inboxId({ eventId, id }: Pick<DeadLetter, 'eventId' | 'id'>): string {
  return eventId ?? `unreadable-${id}`;
}

/** What a dead letter says about itself, and what its consumer's inbox row says. */
async function explained(table: Table, source: DeadLetterQueue, message: QueueMessage, retentionMs: number) {
  const { eventId, type, cause, expiresAt } = readDeadLetter(source, message, retentionMs);
  const { messageId: id, sentAt } = message;
  const letter = { id, eventId, type, sentAt, expiresAt, received: message };
  if (source.kind === 'stream') return { ...letter, fingerprint: cause, lastError: undefined };
  const row = await readInbox(table, source.consumer.name, inboxId({ eventId, id }), true);
  const { fingerprint, lastError } = readable(row) ?? {};
  return { ...letter, fingerprint: cause ?? fingerprint, lastError: cause ?? lastError, row };
}

async function deadEvents({ directory, table }: DeadLetterDeps, limit: number): Promise<ReceivedDeadLetters> {
  const { shards } = await readSweepState(directory, table);
  const { items } = await readDeadPointers(table, shards, Number.POSITIVE_INFINITY);
  const deadLetters = items.map(deadEvent).sort((a, b) => (a.sentAt ?? 0) - (b.sentAt ?? 0));
  return { deadLetters: deadLetters.slice(0, limit), total: deadLetters.length };
}

function deadEvent(pointer: DeadPointer | UnreadableRow): DeadLetter {
  const { SK: id } = pointer;
  const { type, deadAt, fingerprint, lastError } = isUnreadable(pointer)
    ? { ...NOTHING, fingerprint: unreadableText(pointer.unreadable) }
    : pointer;
  return { id, eventId: id, type, sentAt: deadAt, expiresAt: undefined, fingerprint, lastError };
}

const NOTHING = { type: undefined, deadAt: undefined, lastError: undefined };

/** The pointers at the DEAD events. @param max - at most this many of one shard */
export async function readDeadPointers(
  table: Table,
  shards: readonly number[],
  max: number,
): Promise<PartialList<DeadPointer | UnreadableRow>> {
  const found = await eachOf(shards, (shard) => readPartition(table, { pk: deadKey(shard, '').PK }, max));
  return {
    items: found.flatMap(({ items }) => items.map((item) => readDeadPointer(item))),
    more: found.some(({ more }) => more),
  };
}
