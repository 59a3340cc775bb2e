import { eventIdTime, isEventId } from '../../lambdas/runtime/store/event-id.ts';
import type { InboxRow } from '../../lambdas/runtime/store/inbox-row.ts';
import { readable, type UnreadableRow } from '../../lambdas/runtime/store/stored-rows.ts';
import { type Operation, readOperations } from './operations.ts';
import type { StoredRows } from './stored-rows.ts';

/** The command of a resend's record. */
export const RESEND = 'dlq resend';

/** An event that was sent in place of another one, with other data and to one consumer. */
export interface ResentEvent extends Pick<Operation, 'at' | 'by' | 'reason'> {
  readonly consumer: string;
  /** The dead-letter source, e.g. `consumer:payments`. */
  readonly source: string;
  /** The event that it replaces. */
  readonly causationId: string;
}

/**
 * Finds the record of the resend that made an event. The event has no outbox row, and its id has the time of the event that it
 * replaces.
 *
 * @param until - the latest time at which it may have been sent, epoch milliseconds
 * @returns the newest one, if the resend was repeated; `undefined` if the event was not sent by a resend, or its resend was refused
 */
export async function findResend(
  stored: Pick<StoredRows, 'inbox' | 'operations'>,
  newEventId: string,
  until: number,
): Promise<ResentEvent | undefined> {
  if (!isEventId(newEventId)) return undefined;
  const { operations } = await readOperations(stored, eventIdTime(newEventId), until);
  const newest = operations.find(
    (operation) => operation.command === RESEND && operation.newEventId === newEventId,
  );
  const { at = 0, by = '', reason = '', source, consumer, eventId: causationId } = newest ?? {};
  if (source === undefined || consumer === undefined || causationId === undefined) return undefined;
  const resent = { source, consumer, causationId, at, by, reason };
  return (await isRefused(stored, resent, newEventId)) ? undefined : resent;
}

/** True if the event was recorded and can never be sent: the event that it would replace was processed, or replaced by another one. */
async function isRefused(
  { inbox }: Pick<StoredRows, 'inbox'>,
  { consumer, causationId }: Pick<ResentEvent, 'consumer' | 'causationId'>,
  newEventId: string,
): Promise<boolean> {
  const row = readable(await inbox.byEvent(consumer, causationId, true));
  const isFinal = row?.status === 'PROCESSED' || row?.status === 'DISCARDED';
  return isFinal && replacementOf(row) !== newEventId;
}

/** The event that was sent in place of a message's event; `undefined` if there is none. */
export function replacementOf(row: InboxRow | UnreadableRow | undefined): string | undefined {
  const known = readable(row);
  return known?.status === 'DISCARDED' ? known.replacedBy : undefined;
}
