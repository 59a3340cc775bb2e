import {
  type ClaimOptions,
  type ClaimResult,
  claimedFree,
  fromNow,
  granted,
  isSuspect,
  readmittedFrom,
  takenOver,
  type Wanted,
  wantedClaim,
} from '../../inbox/claim-transitions.ts';
import type { Message } from '../../inbox/inbox.ts';
import { admissionOf, isOurs, refusalOf, rowOf } from '../../inbox/inbox-admission.ts';
import { abandoned, claimable, readmissible } from '../../inbox/inbox-conditions.ts';
import type { ProcessingRow, RejectedRow } from '../inbox-row.ts';
import { rejectedKey } from '../keys.ts';
import type { InboxContext } from './inbox-context.ts';
import { type Written, writeTransition } from './inbox-writes.ts';

/** No row, FAILED, PROCESSING under a lease that has passed, or REJECTED and redriven -> PROCESSING. */
export async function claimMessage(
  inbox: InboxContext,
  message: Message,
  options: ClaimOptions,
): Promise<ClaimResult> {
  const wanted = wantedClaim(inbox, message, options);
  const from = claimable(inbox, message, options.alone || options.firstReceive);
  const claimed = await writeTransition(inbox, message.eventId, from, claimedFree(wanted));
  if (isGranted(claimed, wanted)) return granted(wanted, claimed.item);
  const admission = admissionOf(inbox, message, rowOf(claimed.item));
  if (admission.status === 'abandoned') return takeOver(inbox, fromNow(inbox, wanted), admission.row);
  if (admission.status === 'readmit') return readmit(inbox, fromNow(inbox, wanted), admission.row);
  return refusalOf(inbox, message, claimed.item);
}

/** PROCESSING under a lease that has passed -> PROCESSING. */
async function takeOver(inbox: InboxContext, wanted: Wanted, row: ProcessingRow): Promise<ClaimResult> {
  const { message } = wanted;
  if (isSuspect(wanted, row)) return { status: 'suspect' };
  const from = abandoned(message, row);
  const taken = await writeTransition(inbox, message.eventId, from, takenOver(inbox, wanted, row));
  if (isGranted(taken, wanted)) return granted(wanted, taken.item, true);
  return refusalOf(inbox, message, taken.item);
}

/** REJECTED and redriven -> PROCESSING, with the pointer removed, in one transaction. */
async function readmit(inbox: InboxContext, wanted: Wanted, row: RejectedRow): Promise<ClaimResult> {
  const { message } = wanted;
  const from = readmissible(message, row);
  const readmitted = await writeTransition(inbox, message.eventId, from, readmittedFrom(wanted), [
    { Delete: { Key: { ...rejectedKey(inbox.consumer, message.eventId) } } },
  ]);
  const { runAnyway } = row;
  if (isGranted(readmitted, wanted))
    return granted(wanted, { attempts: 1, runAnyway, effects: row.effects, pastAttempts: row.pastAttempts });
  return refusalOf(inbox, message, readmitted.item);
}

/** Returns true if this claim was written, either now or by an earlier try whose response was lost. */
function isGranted({ ok, item }: Written, { fence }: Wanted): boolean {
  return ok || isOurs(rowOf(item), fence);
}
