import { errorCode } from '../../base/errors.ts';
import type { Claim, InboxRefusal, Message } from '../../inbox/inbox.ts';
import { admissionOf, refusalOf, rowOf } from '../../inbox/inbox-admission.ts';
import { ours, readmissible, rejectable } from '../../inbox/inbox-conditions.ts';
import { passesOver, rejected, rejectedUnclaimed, SKIP_LOOKS } from '../../inbox/inbox-transitions.ts';
import type { EffectStates } from '../../inbox/past-attempts.ts';
import type { RowsBefore, RowTransition } from '../../inbox/row-transition.ts';
import { mintToken } from '../event-id.ts';
import { rejectedKey } from '../keys.ts';
import { passedOver } from '../last-sequence.ts';
import { SCHEMA } from '../row-schema.ts';
import type { Item, TransactAction } from '../table.ts';
import type { InboxContext } from './inbox-context.ts';
import { changeBy, conditionOf, transactRow, type Written } from './inbox-writes.ts';
import { isLastRefused, raising, readLastSequence } from './last-sequence.ts';

/** The message can never succeed: PROCESSING -> REJECTED. Returns the refusal if the write was refused. @param effects - those that the attempt ran */
export async function rejectMessage(
  inbox: InboxContext,
  claim: Claim,
  error: unknown,
  effects: EffectStates,
): Promise<InboxRefusal | undefined> {
  const { message } = claim;
  const { ok, item } = await writeRejection(
    inbox,
    message,
    ours(claim),
    rejected(inbox, claim, error, effects),
  );
  if (ok) return undefined;
  const refusal = refusalOf(inbox, message, item);
  return refusal.status === 'rejected' ? undefined : refusal;
}

/** Rejects an unclaimed message. */
export async function rejectUnclaimed(
  inbox: InboxContext,
  message: Message,
  error: unknown,
): Promise<InboxRefusal> {
  const reason = errorCode(error);
  const transition = rejectedUnclaimed(inbox, message, error, mintToken(inbox.random));
  const first = await writeRejection(inbox, message, rejectable(inbox, message, reason), transition);
  if (first.ok) return { status: 'rejected', reason };
  const admission = admissionOf(inbox, message, rowOf(first.item));
  if (admission.status !== 'readmit') return refusalOf(inbox, message, first.item);
  // It was rejected before under another message id: it stays REJECTED and keeps its pointer.
  const again = await writeRejection(inbox, message, readmissible(message, admission.row), transition);
  return again.ok ? { status: 'rejected', reason } : refusalOf(inbox, message, again.item);
}

/** Any state -> REJECTED, with the pointer that lists it, in one transaction. */
async function writeRejection(
  inbox: InboxContext,
  { eventId, place, sentAt }: Message,
  from: RowsBefore,
  transition: RowTransition,
): Promise<Written> {
  const change = changeBy(inbox, from, transition);
  const pointer = rejectedPointer(inbox.consumer, eventId, { ...change.set, sentAt });
  for (let look = 1; ; look += 1) {
    const skip = await skipOf(inbox, place, transition);
    const others = [...skip, { Put: { Item: pointer } }];
    try {
      return await transactRow(inbox, eventId, change, conditionOf(inbox, from), others);
    } catch (error) {
      if (skip.length === 0 || look === SKIP_LOOKS || !isLastRefused(error)) throw error;
    }
  }
}

/** The pointer that lists a rejected message. @param row - what its row stores */
export function rejectedPointer(consumer: string, eventId: string, row: Item): Item {
  const { rejectedAt, reason, lastError, fingerprint, expiresAt, sentAt } = row;
  return {
    ...rejectedKey(consumer, eventId),
    schema: SCHEMA,
    ...{ rejectedAt, reason, lastError, fingerprint },
    ...(expiresAt === undefined ? {} : { expiresAt }),
    ...(sentAt === undefined ? {} : { sentAt }),
  };
}

/** The action that passes over the number of a rejected message. */
async function skipOf(
  inbox: InboxContext,
  place: Message['place'],
  transition: RowTransition,
): Promise<TransactAction[]> {
  if (!passesOver(place, transition)) return [];
  return raising(inbox.clock, passedOver(place.order, await readLastSequence(inbox, place.order.key)));
}
