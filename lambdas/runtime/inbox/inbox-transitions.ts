import { errorCode } from '../base/errors.ts';
import { jsonFault } from '../base/json-fault.ts';
import { isUnreadableId } from '../store/event-id.ts';
import type { AskedWait } from '../store/inbox-row.ts';
import type { GatedPlace } from '../store/last-sequence.ts';
import { SPARE_DAYS } from '../store/row-expiry.ts';
import type { Claim, InboxRules, Message } from './inbox.ts';
import { ALONE_FROM, STALE, TOO_OLD } from './inbox-conditions.ts';
import type { EffectStates } from './past-attempts.ts';
import { FINAL_REMOVES, type RowTransition } from './row-transition.ts';
import { attemptCause, rejectionCause, rowCause } from './stored-cause.ts';

/** Longer results are not stored in the row, because they would cost more than they are worth. */
const RESULT_MAX_CHARS = 4_096;

/**
 * The handler failed: FAILED, with the error; any worker may claim the message.
 *
 * @param retryAt - the time at which SQS redelivers the message, epoch milliseconds
 * @param effects - the side effects that the attempt ran
 */
export function failed(
  inbox: InboxRules,
  claim: Claim,
  error: unknown,
  retryAt: number,
  effects: EffectStates,
): RowTransition {
  return {
    set: { status: 'FAILED', retryAt, ...attemptCause(inbox, claim, { ended: 'failed', error, effects }) },
    clear: ['leaseUntil', 'endsBy', 'unfinished', 'outOfTime'],
  };
}

/**
 * Releases the message as if this claim had not existed: no attempt is counted.
 *
 * @param cause - stored as the row's last error @default none: the row keeps its last error
 * @param wait - the waits that its handler has asked for, including this one @default it was released for another reason
 */
export function released(
  inbox: InboxRules,
  claim: Claim,
  retryAt: number,
  effects: EffectStates,
  cause?: unknown,
  wait?: AskedWait,
): RowTransition {
  // An outage of hours must not push the attempts out whose effects matter.
  const isPast = wait !== undefined || Object.keys(effects).length > 0;
  const ended = wait === undefined ? { ended: 'released' as const } : { ended: 'waited' as const, wait };
  const past = attemptCause(inbox, claim, { ...ended, error: cause, effects });
  return {
    set: {
      status: 'FAILED',
      retryAt,
      ...(isPast && { pastAttempts: past.pastAttempts }),
      ...(cause === undefined ? {} : rowCause(inbox, cause)),
    },
    count: 'taken-back',
    // The number of claims without a result stays, so that a release cannot hide a message that kills its process.
    clear: ['leaseUntil', 'endsBy', 'outOfTime'],
  };
}

/**
 * The handler ended because its function's time was up: FAILED, with the error. It counts as a claim without a result, and so as
 * an attempt only if it ran alone.
 */
export function cutOff(
  inbox: InboxRules,
  claim: Claim,
  error: unknown,
  retryAt: number,
  effects: EffectStates,
): RowTransition {
  const unfinished = claim.unfinished + 1;
  const cause = attemptCause(inbox, claim, { ended: 'failed', error, effects });
  return {
    set: { status: 'FAILED', retryAt, unfinished, ...cause },
    ...(claim.unfinished < ALONE_FROM && { count: 'taken-back' }),
    clear: ['leaseUntil', 'endsBy', 'outOfTime'],
  };
}

/**
 * Records that the function's time is up while the handler still runs; the row stays PROCESSING.
 *
 * @param lostTimeToTable - slow table calls used up the handler's time: then the claim must not count, whatever preceded it
 */
export function outOfTime(inbox: InboxRules, error: unknown, lostTimeToTable: boolean): RowTransition {
  return {
    set: { outOfTime: true, ...rowCause(inbox, error) },
    clear: lostTimeToTable ? ['unfinished'] : [],
  };
}

/** The work is done: PROCESSED. @param more - what the row stores of it: a result, or in DynamoDB its commit or what superseded it */
export function processed(
  { clock, inboxRetentionDays }: InboxRules,
  more?: { readonly result?: string | undefined; readonly commitId?: string; readonly supersededBy?: number },
): RowTransition {
  return {
    set: { status: 'PROCESSED', processedAt: clock.now(), ...more },
    keepDays: inboxRetentionDays + SPARE_DAYS,
    clear: FINAL_REMOVES,
  };
}

/** It has waited for too long, under its claim: DISCARDED, for a reason that no operator's decision has. */
export function discardedAsStale({ clock, inboxRetentionDays }: InboxRules): RowTransition {
  return {
    set: { status: 'DISCARDED', discardedAt: clock.now(), reason: STALE },
    count: 'taken-back', // the claim started no attempt
    keepDays: inboxRetentionDays + SPARE_DAYS,
    clear: FINAL_REMOVES.filter((name) => name !== 'reason'),
  };
}

/**
 * The message is done without a claim: PROCESSED in a new row.
 *
 * @param fence - a token of this run
 */
export function processedUnclaimed(
  inbox: InboxRules,
  { type = 'unknown', place }: Message,
  attempts: number,
  fence: string,
): RowTransition {
  const { set, keepDays } = processed(inbox);
  return { set: { ...set, type, fence, attempts, order: place?.order }, clear: [], keepDays };
}

/** The message can never succeed: REJECTED, under its claim. @param effects - those that the attempt ran */
export function rejected(
  inbox: InboxRules,
  claim: Claim,
  error: unknown,
  effects: EffectStates,
): RowTransition {
  const { pastAttempts } = attemptCause(inbox, claim, { ended: 'rejected', error, effects });
  const { set, ...more } = rejection(inbox, claim.message, error, claim);
  return { ...more, set: { ...set, pastAttempts } };
}

/** The message is rejected without a claim: REJECTED. @param fence - a new token, as no claim has left one; or the one that was read */
export function rejectedUnclaimed(
  inbox: InboxRules,
  message: Message,
  error: unknown,
  fence: string,
): RowTransition {
  const { set, ...more } = rejection(inbox, message, error);
  return { ...more, set: { ...set, fence }, count: 'kept' };
}

/**
 * A rejection may expire if the event could not be read: no handler runs under such an id, and once the code can read the message, its
 * redrive runs under the event's own id.
 */
function rejection(inbox: InboxRules, message: Message, error: unknown, claim?: Claim): RowTransition {
  const { order, unplaced } = placeOf(message);
  return {
    set: {
      status: 'REJECTED',
      type: message.type ?? 'unknown',
      order,
      rejectedAt: inbox.clock.now(),
      reason: errorCode(error),
      ...rejectionCause(inbox, error, claim),
    },
    clear: ['leaseUntil', 'endsBy', 'retryAt', 'unfinished', 'outOfTime', ...unplaced],
    rejectedAs: message.messageId,
    keepDays: isUnreadableId(message.eventId) ? inbox.inboxRetentionDays + SPARE_DAYS : undefined,
  };
}

/** The maximum number of reads of a last sequence that changes between the read and the rejection that passes over its number. */
export const SKIP_LOOKS = 3;

/**
 * With `onReject: 'skip'`, the later events of the aggregate go on from the moment of the rejection: never before, never without it. The number of
 * an event that may have run is not passed over: an operator can still allow it, and passes over it otherwise.
 */
export function passesOver(place: GatedPlace | undefined, { set }: RowTransition): place is GatedPlace {
  return place?.skipsRejected === true && set.reason !== TOO_OLD;
}

/**
 * The place of a message in its order, as each claim and each rejection stores it. A message without one has none of an earlier claim: the
 * order of its consumer may have been removed, and an operator's decision would raise a number that no event waits for.
 */
export function placeOf({ place }: Message): Pick<RowTransition['set'], 'order'> & {
  readonly unplaced: readonly 'order'[];
} {
  return { order: place?.order, unplaced: place === undefined ? ['order'] : [] };
}

/** A handler's result as JSON; `undefined` if it returned nothing, or JSON would change the result, or it is too long to store. */
export function resultJson(result: unknown): string | undefined {
  if (jsonFault(result) !== undefined) return undefined;
  const json = JSON.stringify(result) as string | undefined;
  return json !== undefined && json.length <= RESULT_MAX_CHARS ? json : undefined;
}
