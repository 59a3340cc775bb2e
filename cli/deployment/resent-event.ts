import { eventIdTime, isEventId } from '../../lambdas/runtime/store/event-id.ts';
import { inboxKey } from '../../lambdas/runtime/store/keys.ts';
import type { InboxRow } from '../../lambdas/runtime/store/rows.ts';
import { readable, readInboxRow, type UnreadableRow } from '../../lambdas/runtime/store/stored-rows.ts';
import type { Table } from '../../lambdas/runtime/store/table.ts';
import { type Operation, readOperations } from './operations.ts';

/** The command of the records that {@link resendSubject} describes. */
export const RESEND = 'dlq resend';

/** An event that was sent in place of another one, with other data and to one consumer. */
export interface ResentEvent extends Pick<Operation, 'at' | 'by' | 'reason'> {
  readonly consumer: string;
  /** The dead-letter source, e.g. `consumer:payments`. */
  readonly source: string;
  /** The event that it replaces. */
  readonly causationId: string;
}

/** The subject of a resend's record: it names both events. */
export function resendSubject(source: string, eventId: string, newEventId: string): string {
  return `${source}: ${eventId} as ${newEventId}`;
}

const SUBJECT = /^((?:consumer|rule):(\S+)): (\S+) as (\S+)$/;

/**
 * Finds the record of the resend that made an event. The event has no outbox row, and its id has the time of the event that it
 * replaces.
 *
 * @param until - the latest time at which it may have been sent, epoch milliseconds
 * @returns the newest one, if the resend was repeated; `undefined` if the event was not sent by a resend, or its resend was refused
 */
export async function findResend(
  table: Table,
  newEventId: string,
  until: number,
): Promise<ResentEvent | undefined> {
  if (!isEventId(newEventId)) return undefined;
  const { operations } = await readOperations(table, eventIdTime(newEventId), until);
  const found = operations.flatMap(({ command, subject, at, by, reason }) => {
    const [, source = '', consumer = '', causationId = '', made] = SUBJECT.exec(subject) ?? [];
    return command === RESEND && made === newEventId
      ? [{ source, consumer, causationId, at, by, reason }]
      : [];
  });
  const [newest] = found;
  return newest !== undefined && (await isRefused(table, newest, newEventId)) ? undefined : newest;
}

/** True if the event was recorded and can never be sent: the event that it would replace was processed, or replaced by another one. */
async function isRefused(
  table: Table,
  { consumer, causationId }: Pick<ResentEvent, 'consumer' | 'causationId'>,
  newEventId: string,
): Promise<boolean> {
  const row = readable(readInboxRow(await table.get(inboxKey(consumer, causationId), { consistent: true })));
  const isFinal = row?.status === 'PROCESSED' || row?.status === 'DISCARDED';
  return isFinal && replacementOf(row) !== newEventId;
}

const REPLACED = /^Sent again with other data as ([0-9a-f-]{36}): /;

/** The reason for which the event of a dead letter is discarded: it names the one event that runs in its place. */
export function replacedBy(newEventId: string, reason: string): string {
  return `Sent again with other data as ${newEventId}: ${reason}`;
}

/** The event that was sent in place of a message's event; `undefined` if there is none. */
export function replacementOf(row: InboxRow | UnreadableRow | undefined): string | undefined {
  const known = readable(row);
  if (known?.status !== 'DISCARDED') return undefined;
  const [, newEventId] = REPLACED.exec(known.discardedReason ?? '') ?? [];
  return isEventId(newEventId) ? newEventId : undefined;
}
