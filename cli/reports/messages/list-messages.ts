import { HOUR_MS } from '../../../lambdas/runtime/base/units.ts';
import { depthOf } from '../../../lambdas/runtime/operations/dead-letters.ts';
import type { ConsumerEntry } from '../../../lambdas/runtime/operations/directory.ts';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import type { RejectedPointer } from '../../../lambdas/runtime/store/rows.ts';
import {
  isUnreadable,
  readable,
  readInboxRow,
  type UnreadableRow,
} from '../../../lambdas/runtime/store/stored-rows.ts';
import type { Table } from '../../../lambdas/runtime/store/table.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { readRejected, readWaiting } from '../../deployment/message-reader.ts';
import { unfinishedText, unreadableText } from '../../deployment/row-text.ts';
import { type PartialList, readSweepState, withItems } from '../../deployment/rows-reader.ts';
import { readUnclaimed } from '../../deployment/unclaimed-messages.ts';
import { newest } from '../../terminal/listing.ts';
import { type WindowOptions, windowOf } from '../../terminal/window.ts';
import { type ListedMessage, listed, UNCLAIMED } from './listed-message.ts';

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
  deployment: Pick<Deployment, 'directory' | 'table' | 'queues' | 'clock'>,
  consumer: ConsumerEntry,
  options: MessageChoice,
): Promise<PartialList<ListedMessage>> {
  const { table, queues, clock } = deployment;
  const all = !options.failed && !options.rejected && !options.waiting;
  const none: PartialList<ListedMessage> = { items: [], more: false };
  const [failed, rejected, unclaimed] = await Promise.all([
    all || options.failed ? retriedOf(table, consumer, clock.now()) : none,
    all || options.rejected
      ? depthOf(queues, consumer.deadLetterQueue).then((depth) =>
          rejectedOf(table, consumer, options, depth?.retentionMs, clock.now()),
        )
      : none,
    options.waiting ? unclaimedOf(deployment, consumer, options) : none,
  ]);
  const lists = [failed, rejected, unclaimed];
  return { items: lists.flatMap(({ items }) => items), more: lists.some(({ more }) => more) };
}

async function unclaimedOf(
  { directory, table, clock }: Pick<Deployment, 'directory' | 'table' | 'clock'>,
  consumer: ConsumerEntry,
  { since = HOUR_MS, at, by, limit }: MessageChoice,
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
      const content =
        row.status === 'PROCESSING'
          ? { ...row, at: row.claimedAt, lastError: unfinishedText(row) }
          : { ...row, at: failedAt };
      return listed(consumer, eventId, row.status, content);
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
  { by, limit }: MessageChoice,
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
