import {
  BEHIND_MS,
  COUNTS_LAG_MS,
  DELIVERY_GRACE_MS,
  STUCK_MS,
} from '../../../lambdas/runtime/base/patience.ts';
import { MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import { TOO_OLD } from '../../../lambdas/runtime/inbox/inbox-conditions.ts';
import { type InboxState, isOverdue } from '../../../lambdas/runtime/inbox/inbox-state.ts';
import type { RejectedRow } from '../../../lambdas/runtime/store/inbox-row.ts';
import { readable } from '../../../lambdas/runtime/store/stored-rows.ts';
import { bornAt, type TracedEvent, type TracedMessage } from './trace.ts';

/** Within this time a rejected message reaches the dead-letter queue, and an abandoned one is claimed again. */
const REDELIVERED_MS = 15 * MINUTE_MS;

/**
 * SQS's default visibility timeout of a consumer's queue, and more than its counts lag: a rejected message that is in neither queue
 * by then was deleted.
 */
export const MOVED_MS = 3 * MINUTE_MS;

/** The cases of one consumer's message that `why` distinguishes. */
export type MessageCase =
  | 'processed'
  | 'discarded'
  | 'leased'
  | 'abandoned'
  | 'abandoned-late'
  | 'failed'
  | 'failed-late'
  // Rejected: too old, or by where its dead letter is.
  | 'rejected-too-old'
  | 'rejected'
  | 'rejected-moving'
  | 'rejected-unseen'
  | 'rejected-gone'
  | 'row-deleted'
  // Without an inbox row.
  | 'dead-lettered'
  | 'undelivered'
  | 'unproven'
  | 'missing'
  | 'not-in-queue'
  | 'resend-missing'
  | 'waiting'
  | 'waiting-late';

/** Classifies a message; `undefined` if its row cannot be read or its event is not published, so that the outbox row decides. */
export function messageCase(
  event: TracedEvent,
  message: TracedMessage,
  state: InboxState,
  now: number,
): MessageCase | undefined {
  switch (state.is) {
    case 'absent':
      return readable(event.row)?.status === 'PUBLISHED' || event.resent !== undefined
        ? unclaimedCase(event, message, now)
        : undefined;
    case 'unreadable':
      return undefined;
    case 'rejected':
      return rejectedCase(state.row, message, now);
    case 'failed':
      return isOverdue(state.row, now - STUCK_MS) ? 'failed-late' : 'failed';
    case 'abandoned':
      return isOverdue(state.row, now - REDELIVERED_MS) ? 'abandoned-late' : 'abandoned';
    default:
      return state.is;
  }
}

function rejectedCase(
  { reason, runAnyway, rejectedAt = 0 }: RejectedRow,
  { deadLetter, unseen, queue }: TracedMessage,
  now: number,
): MessageCase {
  if (reason === TOO_OLD && runAnyway !== true) return 'rejected-too-old';
  if (deadLetter !== undefined) return 'rejected';
  const isMoving = queue !== undefined && queue.waiting + queue.inFlight > 0;
  if (now - rejectedAt < (isMoving || unseen ? REDELIVERED_MS : MOVED_MS)) return 'rejected-moving';
  return unseen ? 'rejected-unseen' : 'rejected-gone';
}

function unclaimedCase(event: TracedEvent, message: TracedMessage, now: number): MessageCase {
  const { consumer, deadLetter, isRowDeleted } = message;
  if (isRowDeleted) return 'row-deleted';
  if (deadLetter !== undefined) return deadLetter.source.kind === 'rule' ? 'undelivered' : 'dead-lettered';
  const publishedAt = publishedAtOf(event);
  const isEmpty = isQueueEmpty(message);
  // Its consumer was named, so no declaration decides; and the audit does not cover it.
  if (event.resent !== undefined && isEmpty && now - publishedAt > COUNTS_LAG_MS) return 'resend-missing';
  if (isEmpty && publishedAt < (consumer.changedAt ?? 0)) return 'unproven';
  if (isEmpty && now - publishedAt > DELIVERY_GRACE_MS) return 'missing';
  if (isEmpty && now - publishedAt > COUNTS_LAG_MS) return 'not-in-queue';
  return now - publishedAt > BEHIND_MS ? 'waiting-late' : 'waiting';
}

/** True if a rejected message without a dead letter may be in its consumer's queue: until SQS moves it or, after a redrive, until it runs. */
export function isHeld(found: MessageCase | undefined, { queue }: Pick<TracedMessage, 'queue'>): boolean {
  const isOut = found === 'rejected-moving' || found === 'rejected-gone';
  return isOut && queue !== undefined && queue.waiting + queue.inFlight > 0;
}

/** True if the queue was read and is empty, or does not exist. Of a message with a row, the queue is not read. */
export function isQueueEmpty({ row, queue }: Pick<TracedMessage, 'row' | 'queue'>): boolean {
  return row === undefined && (queue === undefined || queue.waiting + queue.inFlight === 0);
}

/** When an event was published or sent again, epoch milliseconds; without that on its rows, when it was committed. */
export function publishedAtOf(event: TracedEvent): number {
  return readable(event.row)?.publishedAt ?? event.resent?.at ?? bornAt(event);
}
