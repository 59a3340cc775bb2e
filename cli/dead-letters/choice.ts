import { MailroomError } from '../../lambdas/runtime/errors.ts';
import { shell } from '../frame/shell.ts';
import type { DeadLetter } from './dead-letters.ts';
import type { DeadLetterSource } from './sources.ts';

/** The dead letters of a source that a command means. */
export interface DeadLetterChoice {
  /** Those with this text in the fingerprint of their cause, upper or lower case. @default any cause */
  readonly cause?: string | undefined;
  /** Ids of dead letters or of events. @default all */
  readonly ids?: readonly string[] | undefined;
}

/** The choice as words of a command to type. */
export function choiceWords({ cause, ids = [] }: DeadLetterChoice): string[] {
  return [...ids, ...(cause === undefined ? [] : ['--cause', cause])];
}

/**
 * Picks dead letters.
 *
 * @throws `NO_SUCH_DEAD_LETTER` when one that was named is not among them
 */
export function choose(
  { name }: Pick<DeadLetterSource, 'name'>,
  deadLetters: readonly DeadLetter[],
  { cause = '', ids = [] }: DeadLetterChoice,
): DeadLetter[] {
  const missing = ids.filter(
    (wanted) => !deadLetters.some(({ id, eventId }) => [id, eventId].includes(wanted)),
  );
  if (missing.length > 0) {
    throw new MailroomError(
      'NO_SUCH_DEAD_LETTER',
      `There is no dead letter ${missing.join(', ')} in ${name} among the ${deadLetters.length} that are visible now. mailroom ` +
        `${shell`dlq list ${name}`} shows them; another command that reads dead letters hides them for some seconds.`,
    );
  }
  return deadLetters.filter(
    ({ id, eventId, fingerprint = '' }) =>
      (ids.length === 0 || [id, eventId].some((known) => known !== undefined && ids.includes(known))) &&
      fingerprint.toLowerCase().includes(cause.toLowerCase()),
  );
}
