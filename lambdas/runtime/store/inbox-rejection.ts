import { errorCode } from '../errors.ts';
import { mintToken } from './event-id.ts';
import type { Claim, InboxContext, InboxRefusal, Message } from './inbox.ts';
import { admissionOf, refusalOf, rowOf } from './inbox-admission.ts';
import { mine, readmissible, rejectable, TOO_OLD } from './inbox-conditions.ts';
import { rowCause, transactRow } from './inbox-writes.ts';
import type { RowChange, RowCondition, Written } from './row-update.ts';
import { type RejectedPointer, rejectedKey, SCHEMA } from './rows.ts';

/** The message can never succeed: PROCESSING -> REJECTED. Refused: what the row says instead. */
export async function rejectMessage(
  inbox: InboxContext,
  claim: Claim,
  error: unknown,
): Promise<InboxRefusal | undefined> {
  const { ok, item } = await rejection(inbox, claim.message, error)(mine(claim));
  if (ok) return undefined;
  const refusal = refusalOf(inbox, claim.message, item);
  return refusal.status === 'rejected' ? undefined : refusal;
}

/**
 * Rejects a message that nobody claimed, on the claim's own condition. Where it is too old to know whether it was
 * processed, only the reason `EVENT_TOO_OLD` makes a row: any other could be mended, and let it run again.
 */
export async function rejectUnclaimed(
  inbox: InboxContext,
  message: Message,
  error: unknown,
): Promise<InboxRefusal> {
  const reason = errorCode(error);
  const reject = rejection(inbox, message, error, mintToken(inbox.random));
  const { condition, values } = rejectable(inbox, message);
  const first = await reject({
    condition: reason === TOO_OLD ? `attribute_not_exists(PK) OR (${condition})` : condition,
    values,
  });
  if (first.ok) return { status: 'rejected', reason };
  const row = rowOf(first.item);
  if (row === undefined || admissionOf(inbox, message, row).status !== 'readmit')
    return refusalOf(inbox, message, first.item);
  // Rejected before under another message id: it stays REJECTED and keeps its pointer.
  const again = await reject(readmissible(message, row));
  return again.ok ? { status: 'rejected', reason } : refusalOf(inbox, message, again.item);
}

/**
 * Whatever it is -> REJECTED, and the pointer that lists it in, in one transaction.
 *
 * @param fence - set where no claim has left one @default the claim's stays
 */
function rejection(
  inbox: InboxContext,
  message: Message,
  error: unknown,
  fence?: string,
): (condition: RowCondition) => Promise<Written> {
  const rejectedAt = inbox.clock.now();
  const cause = { rejectedAt, reason: errorCode(error), ...rowCause(inbox, error) };
  const change: RowChange = {
    set: { status: 'REJECTED', schema: SCHEMA, type: message.type ?? 'unknown', fence, ...cause },
    ...(fence === undefined
      ? {}
      : { computed: { attempts: 'if_not_exists(attempts, :zero)' }, values: { ':zero': 0 } }),
    add: { rejectedIds: new Set([message.messageId]) },
    remove: ['leaseUntil', 'endsBy', 'retryAt', 'unfinished', 'outOfTime'],
  };
  const pointer: RejectedPointer = {
    ...rejectedKey(inbox.consumer, message.eventId),
    schema: SCHEMA,
    ...cause,
    ...(message.sentAt === undefined ? {} : { sentAt: message.sentAt }),
  };
  return (condition) =>
    transactRow(inbox, message.eventId, change, condition, [{ Put: { Item: { ...pointer } } }]);
}
