import { FenceLost, isMailroomError } from '../base/errors.ts';
import { storedCause } from '../observe/redaction.ts';
import type { AttemptEnd } from '../store/inbox-row.ts';
import { inboxKey } from '../store/keys.ts';
import { transactWithRetry, writeWithRetry } from '../store/retry.ts';
import { expiresAt } from '../store/row-expiry.ts';
import { conditionalUpdate, type RowChange, type RowCondition } from '../store/row-update.ts';
import type { Item, TransactAction } from '../store/table.ts';
import type { Claim, InboxAccess, InboxContext, InboxRefusal, InboxRules, Message } from './inbox.ts';
import { refusalOf, rowOf } from './inbox-admission.ts';
import { mine } from './inbox-conditions.ts';
import { type EffectStates, withAttempt } from './past-attempts.ts';
import { hasHappened, type RowTransition } from './row-transition.ts';

/** The result of a conditional write of an inbox row. */
export interface Written {
  readonly ok: boolean;
  /** The row after the write, or the row that refused it. Absent if the row does not exist, and after a successful transaction. */
  readonly item?: Item | undefined;
}

/** Writes only an inbox row. */
export async function writeRow(
  inbox: InboxAccess,
  eventId: string,
  change: RowChange,
  condition: RowCondition,
): Promise<Written> {
  const write = { Update: conditionalUpdate(inboxKey(inbox.consumer, eventId), change, condition) };
  try {
    return { ok: true, item: await writeWithRetry(inbox, write) };
  } catch (error) {
    if (isMailroomError(error, 'CONDITION_FAILED')) return { ok: false, item: error.item };
    throw error;
  }
}

/**
 * Writes an inbox row together with other items. The inbox row is judged first: its refusal is returned; the refusal of another
 * action is thrown.
 *
 * @throws `TRANSACTION_CANCELLED`, with the reasons of all actions
 */
export async function transactRow(
  inbox: InboxAccess,
  eventId: string,
  change: RowChange,
  condition: RowCondition,
  others: readonly TransactAction[],
): Promise<Written> {
  const own = conditionalUpdate(inboxKey(inbox.consumer, eventId), change, condition);
  try {
    await transactWithRetry(inbox, [{ Update: own }, ...others]);
    return { ok: true };
  } catch (error) {
    if (
      isMailroomError(error, 'TRANSACTION_CANCELLED') &&
      error.reasons[0]?.code === 'ConditionalCheckFailed'
    )
      return { ok: false, item: error.reasons[0].item };
    throw error;
  }
}

/**
 * Makes one transition under the claim's fence.
 *
 * @param others - written in the same transaction @default none
 * @returns `undefined` if it happened, now or by an earlier try whose response was lost; otherwise the refusal
 * @throws `TRANSACTION_CANCELLED` if one of `others` was refused
 */
export async function writeUnderFence(
  inbox: InboxContext,
  claim: Claim,
  transition: RowTransition,
  others: readonly TransactAction[] = [],
): Promise<InboxRefusal | undefined> {
  const { eventId } = claim.message;
  const change = changeBy(inbox, transition);
  const { ok, item } =
    others.length === 0
      ? await writeRow(inbox, eventId, change, mine(claim))
      : await transactRow(inbox, eventId, change, mine(claim), others);
  if (ok || hasHappened(rowOf(item), claim, transition)) return undefined;
  return refusalOf(inbox, claim.message, item);
}

/** The change of the row that a transition makes. */
export function changeBy(
  { clock }: InboxContext,
  { set: { status, processedAt, ...more }, clear, isUncounted, keepDays }: RowTransition,
): RowChange {
  const end = keepDays === undefined ? undefined : expiresAt(clock.now(), keepDays);
  return {
    set: { status, processedAt, expiresAt: end, ...more },
    remove: clear,
    ...(isUncounted && { computed: { attempts: 'attempts - :one' }, values: { ':one': 1 } }),
  };
}

/**
 * The place of a message in its order, as each claim and each rejection stores it. A message without one has none of an earlier claim: the
 * order of its consumer may have been removed, and an operator's decision would raise a number that no event waits for.
 */
export function placeChange({ place }: Message): Required<Pick<RowChange, 'set' | 'remove'>> {
  return place === undefined ? { set: {}, remove: ['order'] } : { set: { order: place.order }, remove: [] };
}

/** The error of a worker that writes under a claim that it has lost. */
export function fenceLost(claim: Claim, refusal: InboxRefusal): FenceLost {
  return new FenceLost(
    `This worker no longer holds message ${claim.message.eventId} (it is ${refusal.status}); writes under the old claim are refused.`,
  );
}

/** The end of a claim's attempt, with its cause, in the form that its row stores. */
export function attemptCause(
  inbox: InboxRules,
  { attempt, pastAttempts }: Claim,
  { error, ...ended }: Pick<AttemptEnd, 'ended' | 'wait'> & { error: unknown; effects: EffectStates },
) {
  const cause = rowCause(inbox, error);
  const end = { at: inbox.clock.now(), attempt, ...ended, error: cause.lastError };
  return { ...cause, pastAttempts: withAttempt(pastAttempts, end) };
}

/**
 * The reason for a message's rejection. Once its attempts are exhausted, its fingerprint is that of its last error, so that a cause has
 * one fingerprint whether its message failed or was rejected.
 *
 * @param claim - has the fingerprint of an attempt before this claim @default the message is unclaimed
 */
export function rejectionCause(inbox: InboxRules, error: unknown, claim?: Pick<Claim, 'fingerprint'>) {
  const { lastError, fingerprint } = rowCause(inbox, error);
  if (!isMailroomError(error, 'ATTEMPTS_EXHAUSTED')) return { lastError, fingerprint };
  const last = 'cause' in error ? rowCause(inbox, error.cause).fingerprint : claim?.fingerprint;
  return { lastError, fingerprint: last ?? fingerprint };
}

/** The reason for a message's failure, in the form that its row stores. */
export function rowCause({ consumer, redact }: InboxRules, error: unknown) {
  const { lastError, fingerprint } = storedCause(error, redact);
  return { lastError, fingerprint: `${consumer} ${fingerprint}` };
}
