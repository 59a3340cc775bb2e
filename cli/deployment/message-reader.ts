import { type InboxState, inboxState } from '../../lambdas/runtime/inbox/inbox-state.ts';
import type { InboxRow, RejectedPointer } from '../../lambdas/runtime/store/inbox-row.ts';
import { failedKey, inboxKey, rejectedKey } from '../../lambdas/runtime/store/keys.ts';
import {
  isUnreadable,
  readFailedHint,
  readInboxRow,
  readRejectedPointer,
  type UnreadableRow,
} from '../../lambdas/runtime/store/stored-rows.ts';
import type { Item, Table } from '../../lambdas/runtime/store/table.ts';
import { type PartialList, readPartition, withItems } from './rows-reader.ts';

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
  table: Table,
  consumer: string,
  max: number,
  now: number,
): Promise<PartialList<WaitingMessage>> {
  const hints = await readPartition(table, { pk: failedKey(consumer, '').PK }, max);
  const read = hints.items.map((item) => readFailedHint(item));
  const keyOf = (hint: { readonly SK: string }) => inboxKey(consumer, hint.SK);
  const found = await withItems(table, read, keyOf, (hint, item): WaitingMessage[] => {
    const failedAt = isUnreadable(hint) ? undefined : hint.failedAt;
    const state = inboxState(readInboxRow(item), now);
    const waits = state.is === 'failed' || state.is === 'abandoned' || state.is === 'unreadable';
    return waits ? [{ eventId: hint.SK, failedAt, state }] : [];
  });
  return { items: found.flat(), more: hints.more };
}

/**
 * Reads the pointers to a consumer's rejected messages, oldest event first. One whose time is over is left out: TTL deletes it and its
 * row within days, and not together.
 *
 * @param now - epoch milliseconds
 */
export async function readRejected(
  table: Table,
  consumer: string,
  max: number,
  now: number,
): Promise<PartialList<RejectedPointer | UnreadableRow>> {
  const { items, more } = await readPartition(table, { pk: rejectedKey(consumer, '').PK }, max);
  const isOver = ({ expiresAt }: Item) => typeof expiresAt === 'number' && expiresAt * 1_000 <= now;
  return { items: items.filter((item) => !isOver(item)).map((item) => readRejectedPointer(item)), more };
}

/** Reads a consumer's inbox row of an event. @param consistent - the read sees every earlier write */
export async function readInbox(
  table: Table,
  consumer: string,
  eventId: string,
  consistent = false,
): Promise<InboxRow | UnreadableRow | undefined> {
  return readInboxRow(await table.get(inboxKey(consumer, eventId), { consistent }));
}
