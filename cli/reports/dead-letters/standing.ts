import { inboxState, isFinal } from '../../../lambdas/runtime/inbox/inbox-state.ts';
import { unreadableId } from '../../../lambdas/runtime/store/event-id.ts';
import type { InboxRow } from '../../../lambdas/runtime/store/inbox-row.ts';
import { readable, type UnreadableRow } from '../../../lambdas/runtime/store/stored-rows.ts';
import { replacementOf } from '../../deployment/resent-event.ts';
import type { StoredRows } from '../../deployment/stored-rows.ts';

/** An event at a consumer, with its inbox row. */
export interface EventAtConsumer {
  readonly eventId: string;
  /** Absent if the consumer has not received it. */
  readonly row: InboxRow | UnreadableRow | undefined;
}

/** The inbox row of a message, and the events that `dlq resend` has put in its place. */
export interface MessageStanding {
  readonly row?: EventAtConsumer['row'];
  /** In order: the row of each one names the next. @default none */
  readonly replacements?: readonly EventAtConsumer[] | undefined;
  /** The row under the id of its body, from the time when its event could not be read. @default none */
  readonly unreadRow?: EventAtConsumer['row'];
  /** An operator has settled it under that id. @default false */
  readonly isSettledUnread?: boolean | undefined;
  /** Its row was deleted by hand: it has the pointer of a rejected message. No effect of it is known. @default false */
  readonly isRowDeleted?: boolean | undefined;
}

/** A dead letter as its id in the inbox needs it. */
interface IdentifiedLetter {
  readonly eventId?: string | undefined;
  readonly received?: { readonly body: string } | undefined;
}

/** The id of a message in the inbox: its event id, or one made of its body if the event cannot be read. */
export function inboxId({ eventId, received }: IdentifiedLetter): string {
  return eventId ?? unreadId(received);
}

/** The id that a message had in the inbox as long as its event could not be read. */
export function unreadId(received: IdentifiedLetter['received']): string {
  return unreadableId(received?.body ?? '');
}

/** The most replacements of one event that are followed: each is an operator's resend. */
export const REPLACEMENTS_MAX = 100;

/**
 * Reads the standing of a message, by its event id; of a dead letter, by every id that it ever had. Every read sees all earlier writes.
 */
export async function readStanding(
  { inbox, deadLetters }: Pick<StoredRows, 'inbox' | 'deadLetters'>,
  consumer: string,
  message: string | IdentifiedLetter,
): Promise<MessageStanding> {
  const eventId = typeof message === 'string' ? message : inboxId(message);
  const unread = typeof message === 'string' ? undefined : unreadId(message.received);
  const row = await inbox.byEvent(consumer, eventId, true);
  const replacements: EventAtConsumer[] = [];
  let next = replacementOf(row);
  while (next !== undefined && replacements.length < REPLACEMENTS_MAX) {
    const replacement = { eventId: next, row: await inbox.byEvent(consumer, next, true) };
    replacements.push(replacement);
    next = replacementOf(replacement.row);
  }
  const isRowDeleted = row === undefined && (await deadLetters.isRejected(consumer, eventId));
  const unreadRow =
    unread === undefined || unread === eventId ? undefined : await inbox.byEvent(consumer, unread, true);
  return {
    row,
    replacements,
    ...(isRowDeleted && { isRowDeleted }),
    ...(unreadRow !== undefined && { unreadRow }),
    ...(isFinal(inboxState(unreadRow, 0)) && { isSettledUnread: true }),
  };
}

/**
 * The event that replaces a message's event and has no inbox row: it may never have been sent, because a resend discards the old
 * event first. `undefined` if the event was not replaced, or its last replacement was received.
 */
export function unsentReplacement({ row, replacements = [] }: MessageStanding): string | undefined {
  const last = replacements.at(-1);
  if (last !== undefined && last.row === undefined) return last.eventId;
  return replacementOf(last === undefined ? row : last.row); // not followed
}

/** The reason why a message must not run again. */
export type SettledVerdict = 'handled' | 'superseded' | 'unsent' | 'busy' | 'unreadable' | 'row-deleted';

/**
 * Judges by the inbox rows alone why a dead letter must not run again; `undefined` if it may. A replaced event is `handled` once its
 * last replacement has a row, whatever became of that one: it is retried, or has its own dead letter. Until then it is `unsent`. One that
 * is PROCESSED because a later number superseded it never ran: it is not handled.
 */
export function settled(standing: MessageStanding, now: number): SettledVerdict | undefined {
  if (unsentReplacement(standing) !== undefined) return 'unsent';
  if (standing.isSettledUnread) return 'handled';
  if (standing.isRowDeleted) return 'row-deleted';
  if (supersededBy(standing) !== undefined) return 'superseded';
  const last = standing.replacements?.at(-1);
  if (last !== undefined) return inboxState(last.row, now).is === 'unreadable' ? 'unreadable' : 'handled';
  const state = inboxState(standing.row, now);
  switch (state.is) {
    case 'processed':
    case 'discarded':
      return 'handled';
    case 'unreadable':
      return 'unreadable';
    case 'leased':
      return 'busy';
    case 'failed':
      return (state.row.retryAt ?? 0) > now ? 'busy' : undefined;
    default:
      return undefined;
  }
}

/** The number that superseded a message, or the last event in its place, before it ran; `undefined` if it was not superseded. */
export function supersededBy({ row, replacements = [] }: MessageStanding): number | undefined {
  const last = readable(replacements.at(-1)?.row ?? row);
  return last?.status === 'PROCESSED' ? last.supersededBy : undefined;
}

/** Says which number superseded a message. */
export function supersededText(standing: MessageStanding): string {
  return `It was superseded before it ran: number ${supersededBy(standing)} of its aggregate was applied or passed over.`;
}

/** True if the work of a message is done, or another message does it: that does not depend on the time. */
export function isHandled(standing: MessageStanding): boolean {
  return settled(standing, 0) === 'handled';
}
