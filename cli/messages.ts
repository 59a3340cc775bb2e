import { Command } from 'commander';
import { depthOf } from '../lambdas/runtime/operations/dead-letters.ts';
import type { ConsumerEntry } from '../lambdas/runtime/operations/directory.ts';
import { inboxKey, type RejectedPointer } from '../lambdas/runtime/store/rows.ts';
import {
  isUnreadable,
  readable,
  readInboxRow,
  type UnreadableRow,
} from '../lambdas/runtime/store/stored-rows.ts';
import type { Table } from '../lambdas/runtime/store/table.ts';
import { byOption, countArgument } from './frame/arguments.ts';
import { withSession } from './frame/command.ts';
import { type ExportFormat, exported, formatOption } from './frame/export.ts';
import { EXIT, type Io } from './frame/io.ts';
import { byCause, causesText, MORE_GROUPED, MORE_LISTED, moreText, newest } from './frame/listing.ts';
import { paint } from './frame/paint.ts';
import type { Session } from './frame/session.ts';
import { shell } from './frame/shell.ts';
import { type WindowOptions, windowOf, windowOptions } from './frame/window.ts';
import { type ListedMessage, listed, messagesText, UNCLAIMED } from './messages/listed-message.ts';
import { readRejected, readWaiting } from './reading/message-reader.ts';
import { unfinishedText, unreadableText } from './reading/row-text.ts';
import { eachOf, type PartialList, readSweepState, withItems } from './reading/rows-reader.ts';
import { readUnclaimed } from './reading/unclaimed-messages.ts';

/** The most messages that are read of one consumer. Rows are in order of their events, and the newest are shown. */
const READ_MAX = 5_000;

const HOUR_MS = 3_600_000;

/** The columns of `--format csv`. */
const COLUMNS: Readonly<Record<keyof ListedMessage, true>> = {
  consumer: true,
  eventId: true,
  status: true,
  type: true,
  attempt: true,
  maxAttempts: true,
  at: true,
  nextAt: true,
  reason: true,
  fingerprint: true,
  lastError: true,
  unfinished: true,
  outOfTime: true,
  expiresAt: true,
};

/** The options of `messages list`. */
interface MessagesOptions extends Partial<WindowOptions> {
  readonly failed?: boolean;
  readonly rejected?: boolean;
  readonly waiting?: boolean;
  readonly consumer?: string;
  readonly by?: 'cause';
  readonly limit: number;
  readonly format?: ExportFormat;
}

/** `mailroom messages`. */
export function messagesCommand(io: Io): Command {
  return new Command('messages')
    .description('Lists messages that consumers could not process, or have not claimed.')
    .addCommand(listCommand(io));
}

function listCommand(io: Io): Command {
  const [since, at] = windowOptions('with --waiting: how far back', HOUR_MS);
  return new Command('list')
    .description('Lists messages that failed and are retried, and messages that were rejected.')
    .option('--failed', 'only messages that are retried')
    .option('--rejected', 'only messages that were rejected')
    .option('--waiting', 'only messages that are unclaimed: published, and without a row of the consumer')
    .addOption(since)
    .addOption(at)
    .option('--consumer <name>', 'only messages of this consumer')
    .addOption(byOption())
    .option('--limit <count>', 'list at most this many', countArgument, 100)
    .addOption(formatOption())
    .action(
      withSession(io, async (session, options: MessagesOptions) => {
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
        const { format } = options;
        if (format !== undefined && more) output.say(MORE_LISTED);
        output.result({ messages: listed, more }, listed, (seen) =>
          format === undefined
            ? messagesText(seen, now) + moreText(more, MORE_LISTED) + nextText(seen, session)
            : exported(listed, format, COLUMNS),
        );
        return EXIT.ok;
      }),
    );
}

/** The command that comes next for a rejected message: it shows where its dead letter is, if there is still one. */
function nextText(messages: readonly ListedMessage[], { commandLine }: Pick<Session, 'commandLine'>): string {
  const rejected = messages.find(({ status }) => status === 'REJECTED');
  if (rejected === undefined) return '';
  const command = commandLine(shell`why ${rejected.eventId}`);
  return `\n\nTo see what to do about the first rejected one:\n  ${paint.dim(command)}`;
}

/**
 * Reads a consumer's messages that failed or were left unfinished (`--failed`), were rejected (`--rejected`), or are unclaimed
 * (`--waiting`). Without any of them, the first two.
 */
export async function messagesOf(
  session: Pick<Session, 'directory' | 'table' | 'queues' | 'clock'>,
  consumer: ConsumerEntry,
  options: MessagesOptions,
): Promise<PartialList<ListedMessage>> {
  const { table, queues, clock } = session;
  const all = !options.failed && !options.rejected && !options.waiting;
  const none: PartialList<ListedMessage> = { items: [], more: false };
  const [failed, rejected, unclaimed] = await Promise.all([
    all || options.failed ? retriedOf(table, consumer, clock.now()) : none,
    all || options.rejected
      ? depthOf(queues, consumer.deadLetterQueue).then((depth) =>
          rejectedOf(table, consumer, options, depth?.retentionMs, clock.now()),
        )
      : none,
    options.waiting ? unclaimedOf(session, consumer, options) : none,
  ]);
  const lists = [failed, rejected, unclaimed];
  return { items: lists.flatMap(({ items }) => items), more: lists.some(({ more }) => more) };
}

async function unclaimedOf(
  { directory, table, clock }: Pick<Session, 'directory' | 'table' | 'clock'>,
  consumer: ConsumerEntry,
  { since = HOUR_MS, at, by, limit }: MessagesOptions,
): Promise<PartialList<ListedMessage>> {
  const { shards } = await readSweepState(directory, table);
  const window = windowOf({ since, ...(at && { at }) }, clock.now());
  const max = by === undefined ? limit : READ_MAX;
  const { items, more } = await readUnclaimed({ directory, table, shards }, consumer, window, max);
  return {
    items: items.map(({ eventId, type, publishedAt }) =>
      listed(consumer, eventId, 'WAITING', {
        type,
        at: publishedAt,
        fingerprint: `${consumer.name}: ${UNCLAIMED}`,
      }),
    ),
    more,
  };
}

async function retriedOf(
  table: Table,
  consumer: ConsumerEntry,
  now: number,
): Promise<PartialList<ListedMessage>> {
  const { items, more } = await readWaiting(table, consumer.name, READ_MAX, now);
  return {
    items: items.map(({ eventId, failedAt, state }) => {
      if (state.is === 'unreadable') return unreadableMessage(consumer, eventId, state.problem);
      const { row } = state;
      const isAbandoned = state.is === 'abandoned';
      return listed(consumer, eventId, isAbandoned ? 'PROCESSING' : 'FAILED', {
        ...row,
        reason: undefined,
        at: isAbandoned ? row.claimedAt : failedAt,
        lastError: isAbandoned ? unfinishedText(row) : row.lastError,
      });
    }),
    more,
  };
}

/**
 * Reads the rejected messages. The pointer has the reason and the time; type and attempts come from the row, which is read only for
 * listed messages. A pointer that may expire and has outlived its row is not listed: no other command would find the message.
 */
async function rejectedOf(
  table: Table,
  consumer: ConsumerEntry,
  { by, limit }: MessagesOptions,
  retentionMs: number | undefined,
  now: number,
): Promise<PartialList<ListedMessage>> {
  const { items, more } = await readRejected(table, consumer.name, READ_MAX, now);
  const at = (pointer: RejectedPointer | UnreadableRow) => ({ at: readable(pointer)?.rejectedAt ?? null });
  const shown = items.toSorted((a, b) => newest(at(a), at(b))).slice(0, by === undefined ? limit : undefined);
  const keyOf = (pointer: RejectedPointer | UnreadableRow) => inboxKey(consumer.name, pointer.SK);
  const rejected = await withItems(table, shown, keyOf, (pointer, item) => {
    if (isUnreadable(pointer)) return [unreadableMessage(consumer, pointer.SK, pointer.unreadable)];
    if (item === undefined && pointer.expiresAt !== undefined) return [];
    const { SK: eventId, rejectedAt, sentAt, reason, fingerprint, lastError } = pointer;
    const { type, attempts } = readable(readInboxRow(item)) ?? {};
    const expiresAt = sentAt === undefined || retentionMs === undefined ? null : sentAt + retentionMs;
    const content = { type, attempts, reason, fingerprint, lastError, at: rejectedAt };
    return [{ ...listed(consumer, eventId, 'REJECTED', content), expiresAt }];
  });
  return {
    items: rejected.flat(),
    more: more || shown.length < items.length,
  };
}

function unreadableMessage(consumer: ConsumerEntry, eventId: string, problem: string): ListedMessage {
  return listed(consumer, eventId, 'UNREADABLE', { lastError: unreadableText(problem) });
}
