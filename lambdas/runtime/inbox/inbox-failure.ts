import type { AskedWait, InboxRow } from '../store/rows.ts';
import type { Claim, InboxContext, InboxRefusal, InboxRules } from './inbox.ts';
import { ALONE_FROM } from './inbox-conditions.ts';
import { attemptCause, rowCause, writeUnderFence } from './inbox-writes.ts';
import type { EffectStates } from './past-attempts.ts';

/**
 * The handler failed: FAILED, with the error; any worker may claim the message. Returns the refusal if the write was refused.
 *
 * @param retryAt - the time at which SQS redelivers the message, epoch milliseconds
 * @param effects - the side effects that the attempt ran
 */
export function failMessage(
  inbox: InboxContext,
  claim: Claim,
  error: unknown,
  retryAt: number,
  effects: EffectStates,
): Promise<InboxRefusal | undefined> {
  const change = {
    set: { status: 'FAILED', retryAt, ...attemptCause(inbox, claim, { ended: 'failed', error, effects }) },
    remove: ['leaseUntil', 'endsBy', 'unfinished', 'outOfTime'],
  };
  return writeUnderFence(inbox, claim, change, isFailed);
}

/**
 * Releases the message as if this claim had not existed: no attempt is counted. Returns the refusal if the write was refused.
 *
 * @param cause - stored as the row's last error @default none: the row keeps its last error
 * @param wait - the waits that its handler has asked for, including this one @default it was released for another reason
 */
export function releaseMessage(
  inbox: InboxContext,
  claim: Claim,
  retryAt: number,
  effects: EffectStates,
  cause?: unknown,
  wait?: AskedWait,
): Promise<InboxRefusal | undefined> {
  const past = releasedAttempt(inbox, claim, effects, cause, wait);
  const change = {
    set: {
      status: 'FAILED',
      retryAt,
      ...(past && { pastAttempts: past.pastAttempts }),
      ...(cause === undefined ? {} : rowCause(inbox, cause)),
    },
    computed: { attempts: 'attempts - :one' },
    values: { ':one': 1 },
    // The number of claims without a result stays, so that a release cannot hide a message that kills its process.
    remove: ['leaseUntil', 'endsBy', 'outOfTime'],
  };
  return writeUnderFence(inbox, claim, change, isFailed);
}

/** The past attempts of a released message. An outage of hours must not push the attempts out whose effects matter. */
export function releasedAttempt(
  inbox: InboxRules,
  claim: Claim,
  effects: EffectStates,
  cause?: unknown,
  wait?: AskedWait,
): ReturnType<typeof attemptCause> | undefined {
  if (wait !== undefined) return attemptCause(inbox, claim, { ended: 'waited', error: cause, effects, wait });
  if (Object.keys(effects).length === 0) return undefined;
  return attemptCause(inbox, claim, { ended: 'released', error: cause, effects });
}

/**
 * The handler ended because its function's time was up: FAILED, with the error. It counts as a claim without a result, and so as
 * an attempt only if it ran alone. Returns the refusal if the write was refused.
 */
export function cutOffMessage(
  inbox: InboxContext,
  claim: Claim,
  error: unknown,
  retryAt: number,
  effects: EffectStates,
): Promise<InboxRefusal | undefined> {
  const unfinished = claim.unfinished + 1;
  const cause = attemptCause(inbox, claim, { ended: 'failed', error, effects });
  const change = {
    set: { status: 'FAILED', retryAt, unfinished, ...cause },
    computed: { attempts: 'attempts - :uncounted' },
    values: { ':uncounted': claim.unfinished >= ALONE_FROM ? 0 : 1 },
    remove: ['leaseUntil', 'endsBy', 'outOfTime'],
  };
  return writeUnderFence(inbox, claim, change, isFailed);
}

/**
 * Records that the function's time is up while the handler still runs; the row stays PROCESSING.
 *
 * @param lostTimeToTable - slow table calls used up the handler's time: then the claim must not count, whatever preceded it
 */
export function markOutOfTime(
  inbox: InboxContext,
  claim: Claim,
  error: unknown,
  lostTimeToTable: boolean,
): Promise<InboxRefusal | undefined> {
  const change = {
    set: { outOfTime: true, ...rowCause(inbox, error) },
    remove: lostTimeToTable ? ['unfinished'] : [],
  };
  return writeUnderFence(
    inbox,
    claim,
    change,
    (row) => row.status === 'PROCESSING' && row.outOfTime === true,
  );
}

function isFailed(row: InboxRow): boolean {
  return row.status === 'FAILED';
}
