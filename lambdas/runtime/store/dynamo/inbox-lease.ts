import type { Claim } from '../../inbox/inbox.ts';
import { fenceLost } from '../../inbox/inbox-admission.ts';
import type { InboxContext } from './inbox-context.ts';
import { writeUnderFence } from './inbox-writes.ts';

/** Extends the lease, never past `endsBy`. @throws `FENCE_LOST` if this worker has lost the message */
export async function renewLease(inbox: InboxContext, claim: Claim): Promise<Claim> {
  const leaseUntil = Math.min(inbox.clock.now() + inbox.leaseMs, claim.endsBy);
  const refusal = await writeUnderFence(inbox, claim, { set: { leaseUntil }, clear: [] });
  if (refusal !== undefined) throw fenceLost(claim, refusal);
  return { ...claim, leaseUntil };
}
