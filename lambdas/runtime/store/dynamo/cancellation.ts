import { MailroomError } from '../../base/errors.ts';
import { cancelled } from '../../outbox/outbox-transitions.ts';
import { eventIdOf, outboxKeyOf } from '../event-id.ts';
import { conditionalUpdate, isExactly } from '../row-update.ts';
import type { Item, TransactAction, Update } from '../table.ts';

/** No relay has ever claimed the event: see {@link cancelled}. */
const UNCLAIMED = '#status = :PENDING AND leaseUntil = dueAt AND #source = :source';

/**
 * Makes the action that cancels a scheduled event: PENDING -> CANCELLED.
 *
 * @throws `BAD_EVENT_ID` if the text is not an event id
 */
export function cancellationOf(eventId: string, service: string, now: number): { readonly Update: Update } {
  const { set, source } = cancelled(eventId, service, now);
  const values = { ':PENDING': 'PENDING', ':source': source };
  return {
    Update: conditionalUpdate(outboxKeyOf(eventId), { set }, { condition: UNCLAIMED, values }),
  };
}

/** Returns true for an action that {@link cancellationOf} made: the only update of an outbox row that a commit may contain. */
export function isCancellation(action: TransactAction): boolean {
  const { Key, ExpressionAttributeValues: values } = action.Update ?? {};
  const eventId = Key === undefined ? undefined : eventIdOf(Key);
  if (eventId === undefined) return false;
  return isExactly(
    action,
    cancellationOf(eventId, String(values?.[':source']), Number(values?.[':cancelledAt'])),
  );
}

/** The reason why an event was not cancelled. */
export type NotCancelled = 'cancelled' | 'absent' | 'too-late';

/**
 * Explains a refused cancellation by the row that refused it.
 *
 * @throws `NOT_DECLARED` if the event belongs to another service
 */
export function notCancelledBecause(eventId: string, service: string, row: Item | undefined): NotCancelled {
  if (row === undefined) return 'absent';
  if (row.source !== service) {
    throw new MailroomError(
      'NOT_DECLARED',
      `Event ${eventId} of ${String(row.source)} cannot be cancelled by ${service}: only the service that owns an event may cancel it. Nothing was changed.`,
    );
  }
  return row.status === 'CANCELLED' ? 'cancelled' : 'too-late';
}
