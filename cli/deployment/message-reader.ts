import { type InboxState, inboxState } from '../../lambdas/runtime/inbox/inbox-state.ts';
import type { RejectedPointer } from '../../lambdas/runtime/store/inbox-row.ts';
import { readable, type UnreadableRow } from '../../lambdas/runtime/store/stored-rows.ts';
import type { PartialList } from './rows-reader.ts';
import type { StoredRows } from './stored-rows.ts';

/** A message that waits for its next attempt, because it failed or was left unfinished; or one whose row cannot be read. */
export interface WaitingMessage {
  readonly eventId: string;
  /** When it failed, epoch milliseconds; absent if its hint cannot be read. */
  readonly failedAt: number | undefined;
  readonly state: Extract<InboxState, { is: 'failed' | 'abandoned' | 'unreadable' }>;
}

/**
 * Reads the messages of a consumer whose last attempt failed or was cut off. Hints find them and the inbox row decides: a hint
 * may outlive the failure.
 *
 * @param max - at most this many hints are looked at
 * @param now - epoch milliseconds
 */
export async function readWaiting(
  { inbox }: Pick<StoredRows, 'inbox'>,
  consumer: string,
  max: number,
  now: number,
): Promise<PartialList<WaitingMessage>> {
  const { items, more } = await inbox.hinted(consumer, max);
  const found = items.flatMap(({ eventId, failedAt, row }): WaitingMessage[] => {
    const state = inboxState(row, now);
    const waits = state.is === 'failed' || state.is === 'abandoned' || state.is === 'unreadable';
    return waits ? [{ eventId, failedAt, state }] : [];
  });
  return { items: found, more };
}

/**
 * Reads the pointers to a consumer's rejected messages, oldest event first. One whose time is over is left out: TTL deletes it and its
 * row within days, and not together.
 *
 * @param now - epoch milliseconds
 */
export async function readRejected(
  { deadLetters }: Pick<StoredRows, 'deadLetters'>,
  consumer: string,
  max: number,
  now: number,
): Promise<PartialList<RejectedPointer | UnreadableRow>> {
  const { items, more } = await deadLetters.rejected(consumer, max);
  const isOver = ({ expiresAt = Number.POSITIVE_INFINITY }: Partial<RejectedPointer>) =>
    expiresAt * 1_000 <= now;
  return { items: items.filter((pointer) => !isOver(readable(pointer) ?? {})), more };
}
