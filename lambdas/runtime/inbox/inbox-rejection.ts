import { errorCode } from '../base/errors.ts';
import { isUnreadableId, mintToken } from '../store/event-id.ts';
import type { RejectedPointer, RejectedRow } from '../store/inbox-row.ts';
import { rejectedKey } from '../store/keys.ts';
import { isLastRefused, passedOver, readLastSequence } from '../store/last-sequence.ts';
import { inboxExpiresAt } from '../store/row-expiry.ts';
import { SCHEMA } from '../store/row-schema.ts';
import type { RowChange, RowCondition } from '../store/row-update.ts';
import type { TransactAction } from '../store/table.ts';
import type { Claim, InboxContext, InboxRefusal, Message } from './inbox.ts';
import { admissionOf, refusalOf, rowOf } from './inbox-admission.ts';
import { mine, readmissible, rejectable, TOO_OLD } from './inbox-conditions.ts';
import { attemptCause, placeChange, rejectionCause, transactRow, type Written } from './inbox-writes.ts';
import type { EffectStates } from './past-attempts.ts';

/** The message can never succeed: PROCESSING -> REJECTED. Returns the refusal if the write was refused. @param effects - those that the attempt ran */
export async function rejectMessage(
  inbox: InboxContext,
  claim: Claim,
  error: unknown,
  effects: EffectStates,
): Promise<InboxRefusal | undefined> {
  const { pastAttempts } = attemptCause(inbox, claim, { ended: 'rejected', error, effects });
  const { ok, item } = await rejection(inbox, claim.message, error, { pastAttempts }, claim)(mine(claim));
  if (ok) return undefined;
  const refusal = refusalOf(inbox, claim.message, item);
  return refusal.status === 'rejected' ? undefined : refusal;
}

/**
 * Rejects an unclaimed message on the claim's own condition. If the event is so old that its row may have expired, only the
 * reason `EVENT_TOO_OLD` creates a row: any other problem could be fixed, which would let the message run again.
 */
export async function rejectUnclaimed(
  inbox: InboxContext,
  message: Message,
  error: unknown,
): Promise<InboxRefusal> {
  const reason = errorCode(error);
  const reject = rejection(inbox, message, error, { fence: mintToken(inbox.random) });
  const { condition, values } = rejectable(inbox, message);
  const first = await reject({
    condition: reason === TOO_OLD ? `attribute_not_exists(PK) OR (${condition})` : condition,
    values,
  });
  if (first.ok) return { status: 'rejected', reason };
  const admission = admissionOf(inbox, message, rowOf(first.item));
  if (admission.status !== 'readmit') return refusalOf(inbox, message, first.item);
  // It was rejected before under another message id: it stays REJECTED and keeps its pointer.
  const again = await reject(readmissible(message, admission.row));
  return again.ok ? { status: 'rejected', reason } : refusalOf(inbox, message, again.item);
}

/**
 * Any state -> REJECTED, with the pointer that lists it, in one transaction. Both may expire if the event could not be read: no handler
 * runs under such an id, and once the code can read the message, its redrive runs under the event's own id.
 *
 * @param set.fence - set if no claim has left one @default the claim's fence stays
 */
function rejection(
  inbox: InboxContext,
  message: Message,
  error: unknown,
  { fence, pastAttempts }: Partial<Pick<RejectedRow, 'fence' | 'pastAttempts'>>,
  claim?: Claim,
): (condition: RowCondition) => Promise<Written> {
  const rejectedAt = inbox.clock.now();
  const { set: placed, remove: unplaced } = placeChange(message);
  const cause = {
    rejectedAt,
    reason: errorCode(error),
    ...rejectionCause(inbox, error, claim),
    ...(isUnreadableId(message.eventId) && {
      expiresAt: inboxExpiresAt(rejectedAt, inbox.inboxRetentionDays),
    }),
  };
  const change: RowChange = {
    set: {
      status: 'REJECTED',
      schema: SCHEMA,
      type: message.type ?? 'unknown',
      ...placed,
      fence,
      pastAttempts,
      ...cause,
    },
    ...(fence === undefined
      ? {}
      : { computed: { attempts: 'if_not_exists(attempts, :zero)' }, values: { ':zero': 0 } }),
    add: { rejectedIds: new Set([message.messageId]) },
    remove: ['leaseUntil', 'endsBy', 'retryAt', 'unfinished', 'outOfTime', ...unplaced],
  };
  const pointer: RejectedPointer = {
    ...rejectedKey(inbox.consumer, message.eventId),
    schema: SCHEMA,
    ...cause,
    ...(message.sentAt === undefined ? {} : { sentAt: message.sentAt }),
  };
  return async (condition) => {
    for (let look = 1; ; look += 1) {
      const skip = await skipOf(inbox, message, cause.reason);
      const others = [...skip, { Put: { Item: { ...pointer } } }];
      try {
        return await transactRow(inbox, message.eventId, change, condition, others);
      } catch (error) {
        if (skip.length === 0 || look === LOOKS || !isLastRefused(error)) throw error;
      }
    }
  };
}

/** The maximum number of reads of a last sequence that changes between the read and the rejection. */
const LOOKS = 3;

/**
 * With `onReject: 'skip'`, the later events of the aggregate go on from the moment of the rejection: never before, never without it. The number of
 * an event that may have run is not passed over: an operator can still allow it, and passes over it otherwise.
 */
async function skipOf(inbox: InboxContext, { place }: Message, reason: string): Promise<TransactAction[]> {
  if (!place?.skipsRejected || reason === TOO_OLD) return [];
  return passedOver(inbox.clock, place.order, await readLastSequence(inbox, place.order.key));
}
