import {
  asRow,
  type FailedHint,
  failedKey,
  type InboxRow,
  inboxKey,
  type RejectedPointer,
  rejectedKey,
} from '../../lambdas/runtime/rows.ts';
import type { Table } from '../../lambdas/runtime/table.ts';
import { eachOf, type Found, readPartition } from './rows-reader.ts';

/** A message that waits for its next attempt. */
export interface FailedMessage {
  readonly eventId: string;
  readonly failedAt: number;
  readonly row: InboxRow;
}

/**
 * The messages of a consumer whose last attempt failed. They are found by their hints, and the inbox row decides: a hint may
 * be left of a message that was processed since.
 *
 * @param max - at most this many hints are looked at
 */
export async function readFailed(table: Table, consumer: string, max: number): Promise<Found<FailedMessage>> {
  const hints = await readPartition<FailedHint>(table, { pk: failedKey(consumer, '').PK }, max);
  const rows = await eachOf(hints.items, async ({ SK: eventId, failedAt }) => {
    return { eventId, failedAt, row: await readInbox(table, consumer, eventId) };
  });
  const items = rows.flatMap(({ row, ...hint }) => (row?.status === 'FAILED' ? [{ ...hint, row }] : []));
  return { items, more: hints.more };
}

/** The pointers at the messages that a consumer rejected, oldest event first. */
export async function readRejected(
  table: Table,
  consumer: string,
  max: number,
): Promise<Found<RejectedPointer>> {
  return readPartition<RejectedPointer>(table, { pk: rejectedKey(consumer, '').PK }, max);
}

/** A consumer's inbox row of an event. */
export async function readInbox(
  table: Table,
  consumer: string,
  eventId: string,
): Promise<InboxRow | undefined> {
  const item = await table.get(inboxKey(consumer, eventId));
  return item === undefined ? undefined : asRow<InboxRow>(item);
}
