import { Command, Option } from 'commander';
import { depthOf } from '../lambdas/runtime/operations/dead-letters.ts';
import type { ConsumerEntry } from '../lambdas/runtime/operations/directory.ts';
import type { RejectedPointer } from '../lambdas/runtime/store/rows.ts';
import { isUnreadable, readable, type UnreadableRow } from '../lambdas/runtime/store/stored-rows.ts';
import type { Table } from '../lambdas/runtime/store/table.ts';
import { countArgument } from './frame/arguments.ts';
import { byCause, causesText, newest } from './frame/causes.ts';
import { withSession } from './frame/command.ts';
import { EXIT } from './frame/exit-code.ts';
import type { Io } from './frame/io.ts';
import { MORE_GROUPED, MORE_LISTED, moreText, when } from './frame/listing.ts';
import { clipped, table as tableText } from './frame/output.ts';
import type { Session } from './frame/session.ts';
import { readInbox, readRejected, readWaiting, type WaitingMessage } from './reading/message-reader.ts';
import { unfinishedText, unreadableText } from './reading/row-text.ts';
import { eachOf, type Found } from './reading/rows-reader.ts';

/** The most messages of one consumer that are read: rows lie in the order of their events, and the newest are shown. */
const READ_MAX = 5_000;

/** The options of `messages list`. */
interface ListOptions {
  readonly failed?: boolean;
  readonly rejected?: boolean;
  readonly consumer?: string;
  readonly by?: 'cause';
  readonly limit: number;
}

/** One message as `--json` prints it. Times are epoch milliseconds; what is not known is `null`. */
interface ListedMessage {
  readonly consumer: string;
  readonly eventId: string;
  /** `PROCESSING`: its worker left it unfinished. `UNREADABLE`: `lastError` says why. */
  readonly status: 'FAILED' | 'PROCESSING' | 'REJECTED' | 'UNREADABLE';
  readonly type: string | null;
  readonly attempt: number | null;
  readonly maxAttempts: number;
  /** When it failed or was rejected, or was begun by the worker that left it. */
  readonly at: number | null;
  /** When a failed message is tried again. */
  readonly nextAt: number | null;
  /** Why it was rejected: an error code. */
  readonly reason: string | null;
  readonly fingerprint: string | null;
  readonly lastError: string | null;
  /** How many claims in a row were left unfinished. */
  readonly unfinished: number | null;
  /** Whether the last one ran out of time. */
  readonly outOfTime: boolean | null;
  /** When the letter of a rejected message is deleted for ever. */
  readonly expiresAt: number | null;
}

/** `mailroom messages`. */
export function messagesCommand(io: Io): Command {
  return new Command('messages')
    .description('Lists what consumers could not process.')
    .addCommand(listCommand(io));
}

function listCommand(io: Io): Command {
  return new Command('list')
    .description('Lists the messages that failed and are tried again, and those that were rejected.')
    .option('--failed', 'only those that are tried again')
    .option('--rejected', 'only those that are not tried again')
    .option('--consumer <name>', 'only those of one consumer')
    .addOption(new Option('--by <what>', 'group them').choices(['cause']))
    .option('--limit <count>', 'list at most so many', countArgument, 100)
    .action(
      withSession(io, async (session, options: ListOptions) => {
        const { directory, output, clock } = session;
        const consumers =
          options.consumer === undefined ? directory.consumers : [session.consumer(options.consumer)];
        const found = await eachOf(consumers, (consumer) => messagesOf(session, consumer, options));
        const messages = found.flatMap(({ items }) => items).sort(newest);
        const now = clock.now();
        if (options.by !== undefined) {
          const more = found.some((list) => list.more);
          const causes = byCause(messages);
          output.result(
            { causes, more },
            causes,
            (seen) => causesText(seen, now) + moreText(more, MORE_GROUPED),
          );
          return EXIT.ok;
        }
        const listed = messages.slice(0, options.limit);
        const more = messages.length > listed.length || found.some((list) => list.more);
        output.result(
          { messages: listed, more },
          listed,
          (seen) => messagesText(seen, now) + moreText(more, MORE_LISTED),
        );
        return EXIT.ok;
      }),
    );
}

/** Reads the messages of a consumer that failed, were left unfinished, or were rejected; `--failed` and `--rejected` leave out the others. */
export async function messagesOf(
  { table, queues, clock }: Pick<Session, 'table' | 'queues' | 'clock'>,
  consumer: ConsumerEntry,
  options: ListOptions,
): Promise<Found<ListedMessage>> {
  const both = options.failed === options.rejected;
  const none: Found<ListedMessage> = { items: [], more: false };
  const [failed, rejected] = await Promise.all([
    both || options.failed ? waitingOf(table, consumer, clock.now()) : none,
    both || options.rejected
      ? depthOf(queues, consumer.deadLetterQueue).then((depth) =>
          rejectedOf(table, consumer, options, depth?.retentionMs),
        )
      : none,
  ]);
  return { items: [...failed.items, ...rejected.items], more: failed.more || rejected.more };
}

async function waitingOf(table: Table, consumer: ConsumerEntry, now: number): Promise<Found<ListedMessage>> {
  const { items, more } = await readWaiting(table, consumer.name, READ_MAX, now);
  return { items: items.map((message) => waitingMessage(consumer, message)), more };
}

function waitingMessage(
  consumer: ConsumerEntry,
  { eventId, failedAt, state }: WaitingMessage,
): ListedMessage {
  if (state.is === 'unreadable') return unreadableMessage(consumer, eventId, state.problem);
  const { row } = state;
  const isLeft = state.is === 'abandoned';
  return {
    ...nothingOf(consumer, eventId, isLeft ? 'PROCESSING' : 'FAILED'),
    type: row.type ?? null,
    attempt: row.attempts,
    at: (isLeft ? row.claimedAt : failedAt) ?? null,
    nextAt: row.retryAt ?? null,
    fingerprint: row.fingerprint ?? null,
    lastError: isLeft ? unfinishedText(row) : (row.lastError ?? null),
    unfinished: row.unfinished ?? null,
    outOfTime: row.outOfTime ?? null,
  };
}

/** The pointer says why and when; type and attempts are the row's, which is read of those that are shown. */
async function rejectedOf(
  table: Table,
  consumer: ConsumerEntry,
  { by, limit }: ListOptions,
  retentionMs: number | undefined,
): Promise<Found<ListedMessage>> {
  const { items, more } = await readRejected(table, consumer.name, READ_MAX);
  const all = items.map((pointer) => ({ pointer, listed: rejectedMessage(consumer, pointer, retentionMs) }));
  const shown = all.sort((a, b) => newest(a.listed, b.listed)).slice(0, by === undefined ? limit : undefined);
  const listed = await eachOf(shown, async ({ pointer, listed }): Promise<ListedMessage> => {
    if (isUnreadable(pointer)) return listed;
    const row = readable(await readInbox(table, consumer.name, pointer.SK));
    return { ...listed, type: row?.type ?? null, attempt: row?.attempts ?? null };
  });
  return { items: listed, more: more || shown.length < items.length };
}

function rejectedMessage(
  consumer: ConsumerEntry,
  pointer: RejectedPointer | UnreadableRow,
  retentionMs: number | undefined,
): ListedMessage {
  if (isUnreadable(pointer)) return unreadableMessage(consumer, pointer.SK, pointer.unreadable);
  const { SK, rejectedAt, reason, fingerprint, lastError, sentAt } = pointer;
  return {
    ...nothingOf(consumer, SK, 'REJECTED'),
    at: rejectedAt,
    reason,
    fingerprint,
    lastError,
    expiresAt: sentAt === undefined || retentionMs === undefined ? null : sentAt + retentionMs,
  };
}

function unreadableMessage(consumer: ConsumerEntry, eventId: string, problem: string): ListedMessage {
  return { ...nothingOf(consumer, eventId, 'UNREADABLE'), lastError: unreadableText(problem) };
}

function nothingOf(consumer: ConsumerEntry, eventId: string, status: ListedMessage['status']): ListedMessage {
  return {
    consumer: consumer.name,
    eventId,
    status,
    type: null,
    attempt: null,
    maxAttempts: consumer.maxAttempts,
    at: null,
    nextAt: null,
    reason: null,
    fingerprint: null,
    lastError: null,
    unfinished: null,
    outOfTime: null,
    expiresAt: null,
  };
}

function messagesText(messages: readonly ListedMessage[], now: number): string {
  if (messages.length === 0) return 'There are none.';
  return tableText(
    ['consumer', 'event', 'type', 'attempt', 'when', 'next', 'letter deleted', 'error'],
    messages.map((message) => [
      message.consumer,
      clipped(message.eventId),
      clipped(message.type ?? '?'),
      `${message.attempt ?? '?'} of ${message.maxAttempts}`,
      when(message.at, now),
      message.status === 'REJECTED' ? 'never' : when(message.nextAt, now),
      message.status === 'REJECTED' ? when(message.expiresAt, now) : '-',
      clipped(`${message.reason === null ? '' : `${message.reason}: `}${message.lastError ?? '?'}`),
    ]),
  );
}
