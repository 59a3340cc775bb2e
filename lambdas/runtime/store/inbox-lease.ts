import type { Claim, InboxContext, InboxRefusal } from './inbox.ts';
import { ALONE_FROM } from './inbox-conditions.ts';
import { fenceLost, rowCause, writeUnderFence } from './inbox-writes.ts';
import type { InboxRow } from './rows.ts';

/** Extends the lease, never past `endsBy`. @throws `FENCE_LOST` when the message is not ours any more */
export async function renewLease(inbox: InboxContext, claim: Claim): Promise<Claim> {
  const leaseUntil = Math.min(inbox.clock.now() + inbox.leaseMs, claim.endsBy);
  const refusal = await writeUnderFence(
    inbox,
    claim,
    { set: { leaseUntil } },
    (row) => row.status === 'PROCESSING',
  );
  if (refusal !== undefined) throw fenceLost(claim, refusal);
  return { ...claim, leaseUntil };
}

/**
 * The handler failed: FAILED, with the error; anybody may claim it. Refused: what the row says instead.
 *
 * @param retryAt - when SQS shows the message again, epoch milliseconds
 */
export function failMessage(
  inbox: InboxContext,
  claim: Claim,
  error: unknown,
  retryAt: number,
): Promise<InboxRefusal | undefined> {
  const change = {
    set: { status: 'FAILED', retryAt, ...rowCause(inbox, error) },
    remove: ['leaseUntil', 'endsBy', 'unfinished', 'outOfTime'],
  };
  return writeUnderFence(inbox, claim, change, isFailed);
}

/**
 * Lets go of the message as if this claim had not been: no attempt counts. Refused: what the row says instead.
 *
 * @param cause - stored as the row's last error @default nothing: it keeps the one that it has
 */
export function releaseMessage(
  inbox: InboxContext,
  claim: Claim,
  retryAt: number,
  cause?: unknown,
): Promise<InboxRefusal | undefined> {
  const change = {
    set: { status: 'FAILED', retryAt, ...(cause === undefined ? {} : rowCause(inbox, cause)) },
    computed: { attempts: 'attempts - :one' },
    values: { ':one': 1 },
    // How many claims ended without a result stays: a message that kills its process must not hide behind a release.
    remove: ['leaseUntil', 'endsBy', 'outOfTime'],
  };
  return writeUnderFence(inbox, claim, change, isFailed);
}

/**
 * The handler ended because its function's time was up: FAILED, with the error. It counts as a claim without a result, and so
 * as an attempt only if it ran alone. Refused: what the row says instead.
 */
export function cutOffMessage(
  inbox: InboxContext,
  claim: Claim,
  error: unknown,
  retryAt: number,
): Promise<InboxRefusal | undefined> {
  const unfinished = claim.unfinished + 1;
  const change = {
    set: { status: 'FAILED', retryAt, unfinished, ...rowCause(inbox, error) },
    computed: { attempts: 'attempts - :uncounted' },
    values: { ':uncounted': claim.unfinished >= ALONE_FROM ? 0 : 1 },
    remove: ['leaseUntil', 'endsBy', 'outOfTime'],
  };
  return writeUnderFence(inbox, claim, change, isFailed);
}

/**
 * The function's time is up and the handler still runs: says so on the row, which stays PROCESSING.
 *
 * @param robbed - whether the table took the handler's time: then the claim must not count, whatever came before it
 */
export function markOutOfTime(
  inbox: InboxContext,
  claim: Claim,
  error: unknown,
  robbed: boolean,
): Promise<InboxRefusal | undefined> {
  const change = {
    set: { outOfTime: true, ...rowCause(inbox, error) },
    remove: robbed ? ['unfinished'] : [],
  };
  return writeUnderFence(inbox, claim, change, (row) => row.outOfTime === true);
}

function isFailed(row: InboxRow): boolean {
  return row.status === 'FAILED';
}
