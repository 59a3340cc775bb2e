import { isMailroomError } from '../base/errors.ts';
import { storedCause } from '../observe/redaction.ts';
import type { AttemptEnd } from '../store/inbox-row.ts';
import type { Claim, InboxRules } from './inbox.ts';
import { type EffectStates, withAttempt } from './past-attempts.ts';

/** The end of a claim's attempt, with its cause, in the form that its row stores. */
export function attemptCause(
  inbox: InboxRules,
  { attempt, pastAttempts }: Claim,
  { error, ...ended }: Pick<AttemptEnd, 'ended' | 'wait'> & { error: unknown; effects: EffectStates },
) {
  const cause = rowCause(inbox, error);
  // A handler may throw undefined; a message that was only released has no error.
  const hasError = error !== undefined || (ended.ended !== 'waited' && ended.ended !== 'released');
  const end = { at: inbox.clock.now(), attempt, ...ended, error: hasError ? cause.lastError : undefined };
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
