import { MailroomError } from '../base/errors.ts';
import { eventIdOf, eventIdTime, outboxKeyOf } from '../store/event-id.ts';
import { expiresAt } from '../store/row-expiry.ts';
import { conditionalUpdate, isExactly } from '../store/row-update.ts';
import type { Item, TransactAction, Update } from '../store/table.ts';

/** The time after which TTL may delete a CANCELLED event, counted from its due time at the earliest, days. */
const CANCELLED_RETENTION_DAYS = 7;

/**
 * The event is scheduled, and no relay has claimed it.
 *
 *     commit                          dueAt      + 2 s
 *       |------ leaseUntil = dueAt ------|----------|--- a relay claims it: leaseUntil > dueAt --- …
 *       |<---------------- cancel is accepted ----->|<-- cancel is refused
 *
 * Every later write of `leaseUntil` stores more than `dueAt`: an event that was claimed, failed, released or requeued may have been
 * published, and is never cancelled. A cancelled event is never claimed, because a claim requires PENDING.
 */
const UNCLAIMED = '#status = :PENDING AND leaseUntil = dueAt AND #source = :source';

/**
 * Makes the action that cancels a scheduled event: PENDING -> CANCELLED. The row outlives its due time: if TTL deleted it earlier, an
 * entry of the same event could be committed again.
 *
 * @throws `BAD_EVENT_ID` if the text is not an event id
 */
export function cancellationOf(eventId: string, service: string, now: number): { readonly Update: Update } {
  const set = {
    status: 'CANCELLED',
    cancelledAt: now,
    cancelledBy: service,
    expiresAt: expiresAt(Math.max(now, eventIdTime(eventId)), CANCELLED_RETENTION_DAYS),
  };
  const values = { ':PENDING': 'PENDING', ':source': service };
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
