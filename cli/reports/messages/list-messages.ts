import { HOUR_MS } from '../../../lambdas/runtime/base/units.ts';
import { depthOf } from '../../../lambdas/runtime/operations/dead-letters.ts';
import type { ConsumerEntry, SourceConsumer } from '../../../lambdas/runtime/operations/directory.ts';
import { isSourceConsumer } from '../../../lambdas/runtime/operations/source-consumers.ts';
import type {
  FailedRow,
  ProcessingRow,
  RejectedPointer,
  RejectedRow,
} from '../../../lambdas/runtime/store/inbox-row.ts';
import { isUnreadable, readable, type UnreadableRow } from '../../../lambdas/runtime/store/stored-rows.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { readRejected, readWaiting } from '../../deployment/message-reader.ts';
import { type OutboxReaderDeps, publishedIn, type SampledEvent } from '../../deployment/published-events.ts';
import { limitText, unfinishedText, unreadableText } from '../../deployment/row-text.ts';
import { eachOf, minutesOf, type PartialList, readSweepState } from '../../deployment/rows-reader.ts';
import type { StoredRows } from '../../deployment/stored-rows.ts';
import { newest, nextTime, when } from '../../terminal/listing.ts';
import { clipped, detailedTable } from '../../terminal/output.ts';
import { type WindowOptions, windowOf } from '../../terminal/window.ts';
import { isLimited } from '../status/waiting-keys.ts';

type Named = Pick<ConsumerEntry, 'name' | 'maxAttempts'>;

/** The most messages that are read of one consumer. Rows are in order of their events, and the newest are shown. */
const READ_MAX = 5_000;

/** The messages to list. */
export interface MessageChoice extends Partial<WindowOptions> {
  readonly failed?: boolean;
  readonly rejected?: boolean;
  readonly waiting?: boolean;
  readonly by?: 'cause';
  readonly limit: number;
}

/**
 * Reads a consumer's messages that failed or were left unfinished (`--failed`), were rejected (`--rejected`), or are unclaimed
 * (`--waiting`). Without any of them, the first two.
 */
export async function messagesOf(
  deployment: Pick<Deployment, 'directory' | 'table' | 'stored' | 'queues' | 'clock'>,
  consumer: ConsumerEntry | SourceConsumer,
  options: MessageChoice,
): Promise<PartialList<ListedMessage>> {
  const { stored, queues, clock } = deployment;
  const all = !options.failed && !options.rejected && !options.waiting;
  const none: PartialList<ListedMessage> = { items: [], more: false };
  const [failed, rejected, unclaimed] = await Promise.all([
    all || options.failed ? retriedOf(stored, consumer, clock.now()) : none,
    all || options.rejected
      ? retentionOf(queues, consumer).then((retentionMs) =>
          rejectedOf(stored, consumer, options, retentionMs, clock.now()),
        )
      : none,
    options.waiting && !isSourceConsumer(consumer) ? unclaimedOf(deployment, consumer, options) : none,
  ]);
  const lists = [failed, rejected, unclaimed];
  return { items: lists.flatMap(({ items }) => items), more: lists.some(({ more }) => more) };
}

/** The retention of a consumer's dead letters, milliseconds; `undefined` if it is unknown. */
async function retentionOf(
  queues: Deployment['queues'],
  consumer: ConsumerEntry | SourceConsumer,
): Promise<number | undefined> {
  if (isSourceConsumer(consumer)) return undefined;
  return (await depthOf(queues, consumer.deadLetterQueue))?.retentionMs;
}

async function unclaimedOf(
  { directory, table, stored, clock }: Pick<Deployment, 'directory' | 'table' | 'stored' | 'clock'>,
  consumer: ConsumerEntry,
  { since = HOUR_MS, at, by, limit }: MessageChoice,
): Promise<PartialList<ListedMessage>> {
  const { shards } = await readSweepState(directory, table);
  const window = windowOf({ since, ...(at && { at }) }, clock.now());
  const max = by === undefined ? limit : READ_MAX;
  const { items, more } = await readUnclaimed({ directory, stored, shards }, consumer, window, max);
  return {
    items: items.map(({ eventId, type, publishedAt }) =>
      listed(consumer, eventId, 'WAITING', {
        type,
        at: publishedAt,
        fingerprint: `${consumer.name} ${UNCLAIMED}`,
      }),
    ),
    more,
  };
}

/** The minutes of {@link readUnclaimed} that are read at once. */
const MINUTES_AT_ONCE = 10;

/** The most events of a consumer whose inbox rows {@link readUnclaimed} looks for. */
const EVENTS_MAX = 5_000;

/**
 * Reads the published events of a range of time that a consumer must receive and has not claimed: they wait in its queue, or are
 * lost. Newest minute first.
 *
 * @param max - stops after this many
 */
async function readUnclaimed(
  deps: OutboxReaderDeps & Pick<Deployment, 'directory'>,
  consumer: ConsumerEntry,
  { since, until }: ReturnType<typeof windowOf>,
  max: number,
): Promise<PartialList<SampledEvent>> {
  const minutes = minutesOf(since, until);
  const found: SampledEvent[] = [];
  let looked = 0;
  let read = 0;
  for (; read < minutes.length && found.length <= max && looked < EVENTS_MAX; read += MINUTES_AT_ONCE) {
    const pages = await eachOf(minutes.slice(read, read + MINUTES_AT_ONCE), (minute) =>
      publishedIn(deps, minute, EVENTS_MAX),
    );
    const events = pages
      .flatMap(({ items }) => items)
      .filter((event) => event.consumers.includes(consumer.name));
    looked += events.length;
    const messages = events.map((event) => ({ consumer: consumer.name, eventId: event.eventId, event }));
    const absent = await deps.stored.inbox.byEvents(messages, ({ event }, row) =>
      row === undefined ? [event] : [],
    );
    found.push(...absent.flat());
  }
  const items = found.sort((a, b) => b.publishedAt - a.publishedAt).slice(0, max);
  return { items, more: read < minutes.length || found.length > max };
}

async function retriedOf(
  stored: StoredRows,
  consumer: Named,
  now: number,
): Promise<PartialList<ListedMessage>> {
  const { items, more } = await readWaiting(stored, consumer.name, READ_MAX, now);
  return {
    items: items.map((message) => {
      const { eventId, failedAt, state } = message;
      if (state.is === 'unreadable') return unreadableMessage(consumer, eventId, state.problem);
      const { row } = state;
      const content =
        row.status === 'PROCESSING'
          ? { ...row, at: row.claimedAt, lastError: unfinishedText(row) }
          : { ...row, at: failedAt, ...waitContent(row) };
      return { ...listed(consumer, eventId, row.status, content), limited: isLimited(message, now) };
    }),
    more,
  };
}

/**
 * Reads the rejected messages. The pointer has the reason and the time; type and attempts come from the row, which is read only for
 * listed messages. A pointer that may expire and has outlived its row is not listed: no other command would find the message.
 */
async function rejectedOf(
  stored: StoredRows,
  consumer: Named,
  { by, limit }: MessageChoice,
  retentionMs: number | undefined,
  now: number,
): Promise<PartialList<ListedMessage>> {
  const { items, more } = await readRejected(stored, consumer.name, READ_MAX, now);
  const at = (pointer: RejectedPointer | UnreadableRow) => ({ at: readable(pointer)?.rejectedAt ?? null });
  const shown = items.toSorted((a, b) => newest(at(a), at(b))).slice(0, by === undefined ? limit : undefined);
  const messages = shown.map((pointer) => ({ consumer: consumer.name, eventId: pointer.SK, pointer }));
  const rejected = await stored.inbox.byEvents(messages, ({ pointer }, row) => {
    if (isUnreadable(pointer)) return [unreadableMessage(consumer, pointer.SK, pointer.unreadable)];
    if (row === undefined && pointer.expiresAt !== undefined) return [];
    const { SK: eventId, rejectedAt, sentAt, reason, fingerprint, lastError } = pointer;
    const { type, attempts } = readable(row) ?? {};
    const expiresAt = sentAt === undefined || retentionMs === undefined ? null : sentAt + retentionMs;
    const content = { type, attempts, reason, fingerprint, lastError, at: rejectedAt };
    return [{ ...listed(consumer, eventId, 'REJECTED', content), expiresAt }];
  });
  return {
    items: rejected.flat(),
    more: more || shown.length < items.length,
  };
}

/** A message that waits for a limit has not failed: an error that it has is of an earlier attempt. */
function waitContent(row: FailedRow): Pick<MessageContent, 'lastError' | 'fingerprint'> {
  const limit = limitText(row);
  return limit === undefined ? {} : { lastError: `waits for ${limit}`, fingerprint: undefined };
}

function unreadableMessage(consumer: Named, eventId: string, problem: string): ListedMessage {
  return listed(consumer, eventId, 'UNREADABLE', { lastError: unreadableText(problem) });
}

/** The cause of a message that its consumer has not claimed. */
const UNCLAIMED = 'published, unclaimed';

/** A message as in the JSON document of docs/cli-json.md. */
export type ListedMessage = ReturnType<typeof listed>;

/** The known attributes of a message, from its row or from the pointer that lists it. */
interface MessageContent
  extends Partial<Pick<FailedRow, 'type' | 'attempts' | 'fingerprint' | 'lastError' | 'retryAt'>>,
    Pick<ProcessingRow, 'unfinished' | 'outOfTime'>,
    Pick<RejectedRow, 'reason'> {
  /** When it became so, epoch milliseconds. */
  readonly at?: number | undefined;
}

/** Combines what is known about a message. */
function listed(
  consumer: Named,
  eventId: string,
  status: 'FAILED' | 'PROCESSING' | 'REJECTED' | 'UNREADABLE' | 'WAITING',
  content: MessageContent,
) {
  return {
    consumer: consumer.name,
    eventId,
    status,
    type: content.type ?? null,
    attempt: content.attempts ?? null,
    maxAttempts: consumer.maxAttempts,
    at: content.at ?? null,
    nextAt: content.retryAt ?? null,
    reason: content.reason ?? null,
    fingerprint: content.fingerprint ?? null,
    lastError: content.lastError ?? null,
    unfinished: content.unfinished ?? null,
    outOfTime: content.outOfTime ?? null,
    limited: false,
    expiresAt: null as number | null,
  };
}

/** `2 of 5`; `-` before the first attempt. */
function attemptCell({ attempt, maxAttempts, status }: ListedMessage): string {
  if (attempt === 0 || status === 'WAITING') return '-';
  return attempt !== null && attempt > maxAttempts ? String(attempt) : `${attempt ?? '?'} of ${maxAttempts}`;
}

/** Messages as a table. */
export function messagesText(messages: readonly ListedMessage[], now: number): string {
  if (messages.length === 0) return 'No such messages.';
  return detailedTable(
    ['event', 'attempt', 'when', 'next'],
    messages.map((message) => ({
      cells: [clipped(message.eventId), attemptCell(message), when(message.at, now), nextCell(message, now)],
      details: [
        `${message.consumer}, ${clipped(message.type ?? 'unknown type')}${deletedText(message, now)}`,
        clipped(
          `${message.reason === null ? '' : `${message.reason}: `}${message.lastError ?? causeOf(message)}`,
        ),
      ],
    })),
  );
}

function nextCell({ status, nextAt }: ListedMessage, now: number): string {
  if (status === 'REJECTED') return 'never';
  return status === 'WAITING' ? '-' : nextTime(nextAt, now);
}

/** The cause of a message without an error. */
function causeOf({ status }: ListedMessage): string {
  return status === 'WAITING' ? UNCLAIMED : '?';
}

function deletedText({ status, expiresAt }: ListedMessage, now: number): string {
  return status === 'REJECTED' ? `, any dead letter expires ${when(expiresAt, now)}` : '';
}
