import { MailroomError } from '../base/errors.ts';
import { TOO_OLD } from '../inbox/inbox-conditions.ts';
import type { InboxChanges } from '../inbox/inbox-operator.ts';
import {
  type Decision,
  type MessageNote,
  type SettleDeps,
  type Settlement,
  settleMessage,
} from '../inbox/settle-message.ts';
import { dynamoInboxChanges } from '../store/dynamo/inbox-operator.ts';
import { eventIdTime, isUnreadableId } from '../store/event-id.ts';
import { isExternalEventId } from '../store/external-id.ts';
import type { InboxRow } from '../store/inbox-row.ts';
import type { OperationDeps } from '../store/operation-record.ts';
import { isUnreadable, readable, type UnreadableRow } from '../store/stored-rows.ts';

/** Dependencies of an operator's decisions about messages. */
export interface MessageDeps extends OperationDeps {
  /** @default the inboxes in the table */
  readonly inboxChanges?: InboxChanges | undefined;
}

/**
 * Sets a message PROCESSED without running its handler, because its work was done by hand. The row gets a new fence, which
 * prevents further writes by a worker that is still running, and a REJECTED pointer is removed in the same transaction. If the
 * message is redelivered, it is absorbed as a duplicate.
 *
 * @returns the state of the row: `resolved`; `processed` or `discarded` if it was so before; `leased`, `effects-unchecked` or
 * `unreadable` if nothing was changed
 * @throws `BAD_EVENT_ID` if `eventId` is neither an event id nor `unreadable-<digest>`
 *
 * @example
 * ```ts
 * await resolveMessage({ table }, { consumer: 'payments', eventId, reason: 'charged by phone', by: 'ada' });
 * ```
 */
export async function resolveMessage(deps: MessageDeps, resolution: Settlement): Promise<Decision> {
  const { eventId } = resolution;
  if (!isUnreadableId(eventId) && !isExternalEventId(eventId)) eventIdTime(eventId); // throws if it is not an event id
  return settleMessage(inChanges(deps), resolution, 'PROCESSED');
}

/**
 * Discards a message permanently: it becomes DISCARDED and never runs, even if it is redelivered. The row gets a new fence, and a
 * REJECTED pointer is removed in the same transaction. Refused if the message is processed or a worker holds it.
 *
 * @param discard.eventId - the event's id, or `unreadable-<digest>` for a message without one
 * @returns the state of the row: `discarded` now or before, `processed`; `leased`, `effects-unchecked` or `unreadable` if nothing was
 * changed
 */
export async function discardMessage(
  deps: MessageDeps,
  discard: Omit<Settlement, 'force'>,
): Promise<Decision> {
  return settleMessage(inChanges(deps), discard, 'DISCARDED');
}

function inChanges(deps: MessageDeps): SettleDeps {
  return { ...deps, inboxChanges: deps.inboxChanges ?? dynamoInboxChanges(deps) };
}

/**
 * Allows a message to run that was rejected because its event is older than the inbox retention. Its row may have expired, so only
 * an operator who knows that it was not processed can allow it. It runs when it is redriven.
 *
 * @throws `NOT_TOO_OLD` if it was not rejected for that reason, `MESSAGE_LEASED` if another transaction held its row: nothing was changed
 */
export async function allowTooOld(deps: MessageDeps, note: MessageNote): Promise<void> {
  const { consumer, eventId } = note;
  const { inboxChanges: changes } = inChanges(deps);
  if (await changes.allow(consumer, note)) return;
  const { row } = await changes.read(consumer, eventId);
  const known = readable(row);
  if (known?.status === 'REJECTED' && known.reason === TOO_OLD)
    throw new MailroomError(
      'MESSAGE_LEASED',
      `Another transaction changed or held the row of ${eventId} at ${consumer}. Nothing was changed. Repeat the command.`,
    );
  throw notTooOld(note, row);
}

/** The refusal to allow a message that was not rejected as too old, with the state of its row. */
export function notTooOld(
  { consumer, eventId }: Pick<MessageNote, 'consumer' | 'eventId'>,
  row: InboxRow | UnreadableRow | undefined,
): MailroomError {
  const found =
    row === undefined
      ? 'has no row'
      : isUnreadable(row)
        ? `has a row that cannot be read (${row.unreadable})`
        : `is ${statusOf(row)}`;
  return new MailroomError(
    'NOT_TOO_OLD',
    `The message ${eventId} of ${consumer} ${found}; only one that is REJECTED as ${TOO_OLD} needs to be allowed. ` +
      'Any other message can be redriven without this.',
  );
}

function statusOf(row: InboxRow): string {
  return row.status === 'REJECTED' && row.reason ? `${row.status}, ${row.reason}` : row.status;
}
