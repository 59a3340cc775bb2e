import { Command, Option } from 'commander';
import { depthOf } from '../lambdas/runtime/audit/audit-verdict.ts';
import type { ConsumerEntry } from '../lambdas/runtime/operate/directory.ts';
import type { Table } from '../lambdas/runtime/table.ts';
import { countArgument } from './frame/arguments.ts';
import { byCause, causesText } from './frame/causes.ts';
import { withSession } from './frame/command.ts';
import { EXIT } from './frame/exit-code.ts';
import type { Io } from './frame/io.ts';
import { MORE_GROUPED, MORE_LISTED, moreText, when } from './frame/listing.ts';
import { printable, table as tableText } from './frame/output.ts';
import type { Session } from './frame/session.ts';
import { readFailed, readInbox, readRejected } from './reading/message-reader.ts';
import { eachOf, type Found } from './reading/rows-reader.ts';

/** The most messages of one consumer that are read: rows lie in the order of their events, and the newest are shown. */
const READ_MAX = 5_000;

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
  readonly status: 'FAILED' | 'REJECTED';
  readonly type: string | null;
  readonly attempt: number | null;
  readonly maxAttempts: number;
  /** When it failed or was rejected. */
  readonly at: number;
  /** When a failed message is tried again. */
  readonly nextAt: number | null;
  /** Why it was rejected: an error code. */
  readonly reason: string | null;
  readonly fingerprint: string | null;
  readonly lastError: string | null;
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
        const { directory, output } = session;
        const consumers =
          options.consumer === undefined ? directory.consumers : [session.consumer(options.consumer)];
        const found = await eachOf(consumers, (consumer) => messagesOf(session, consumer, options));
        const messages = found.flatMap(({ items }) => items).sort((a, b) => b.at - a.at);
        const now = Date.now();
        if (options.by !== undefined) {
          const more = found.some((list) => list.more);
          const causes = byCause(messages);
          output.result({ causes, more }, () => causesText(causes, now) + moreText(more, MORE_GROUPED));
          return EXIT.ok;
        }
        const listed = messages.slice(0, options.limit);
        const more = messages.length > listed.length || found.some((list) => list.more);
        output.result(
          { messages: listed, more },
          () => messagesText(listed, now) + moreText(more, MORE_LISTED),
        );
        return EXIT.ok;
      }),
    );
}

async function messagesOf(
  { table, queues }: Pick<Session, 'table' | 'queues'>,
  consumer: ConsumerEntry,
  options: ListOptions,
): Promise<Found<ListedMessage>> {
  const both = options.failed === options.rejected;
  const none: Found<ListedMessage> = { items: [], more: false };
  const [failed, rejected] = await Promise.all([
    both || options.failed ? failedOf(table, consumer) : none,
    both || options.rejected
      ? depthOf(queues, consumer.deadLetterQueue).then((depth) =>
          rejectedOf(table, consumer, options, depth?.retentionMs),
        )
      : none,
  ]);
  return { items: [...failed.items, ...rejected.items], more: failed.more || rejected.more };
}

async function failedOf(table: Table, consumer: ConsumerEntry): Promise<Found<ListedMessage>> {
  const { items, more } = await readFailed(table, consumer.name, READ_MAX);
  const listed = items.map(
    ({ eventId, failedAt, row }): ListedMessage => ({
      ...nothingOf(consumer, eventId, 'FAILED'),
      type: row.type ?? null,
      attempt: row.attempts,
      at: failedAt,
      nextAt: row.retryAt ?? null,
      fingerprint: row.fingerprint ?? null,
      lastError: row.lastError ?? null,
    }),
  );
  return { items: listed, more };
}

/** The pointer says why and when; type and attempts are the row's, which is read of those that are shown. */
async function rejectedOf(
  table: Table,
  consumer: ConsumerEntry,
  { by, limit }: ListOptions,
  retentionMs: number | undefined,
): Promise<Found<ListedMessage>> {
  const { items, more } = await readRejected(table, consumer.name, READ_MAX);
  const newest = items.toSorted((a, b) => b.rejectedAt - a.rejectedAt);
  const shown = by === undefined ? newest.slice(0, limit) : newest;
  const listed = await eachOf(shown, async (pointer): Promise<ListedMessage> => {
    const row = await readInbox(table, consumer.name, pointer.SK);
    return {
      ...nothingOf(consumer, pointer.SK, 'REJECTED'),
      type: row?.type ?? null,
      attempt: row?.attempts ?? null,
      at: pointer.rejectedAt,
      reason: pointer.reason,
      fingerprint: pointer.fingerprint,
      lastError: pointer.lastError,
      expiresAt:
        pointer.sentAt === undefined || retentionMs === undefined ? null : pointer.sentAt + retentionMs,
    };
  });
  return { items: listed, more: more || shown.length < items.length };
}

function nothingOf(consumer: ConsumerEntry, eventId: string, status: ListedMessage['status']): ListedMessage {
  return {
    consumer: consumer.name,
    eventId,
    status,
    type: null,
    attempt: null,
    maxAttempts: consumer.maxAttempts,
    at: 0,
    nextAt: null,
    reason: null,
    fingerprint: null,
    lastError: null,
    expiresAt: null,
  };
}

function messagesText(messages: readonly ListedMessage[], now: number): string {
  if (messages.length === 0) return 'There are none.';
  return tableText(
    ['consumer', 'event', 'type', 'attempt', 'when', 'next', 'letter deleted', 'error'],
    messages.map((message) => [
      message.consumer,
      message.eventId,
      message.type ?? '?',
      `${message.attempt ?? '?'} of ${message.maxAttempts}`,
      when(message.at, now),
      message.status === 'REJECTED' ? 'never' : when(message.nextAt, now),
      message.status === 'REJECTED' ? when(message.expiresAt, now) : '-',
      printable(`${message.reason === null ? '' : `${message.reason}: `}${message.lastError ?? '?'}`),
    ]),
  );
}
