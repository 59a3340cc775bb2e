import { MailroomError } from '../../lambdas/runtime/errors.ts';
import type { Session } from '../frame/session.ts';
import { shell } from '../frame/shell.ts';
import type { DeadLetter } from './dead-letters.ts';
import type { DeadLetterSource } from './sources.ts';

/** A selection of the dead letters of a source. */
export interface DeadLetterChoice {
  /** Dead letters with this text in their fingerprint, in any case. @default any cause */
  readonly cause?: string | undefined;
  /** Ids of dead letters or of events. @default all */
  readonly ids?: readonly string[] | undefined;
}

/** The choice as words of a command line. */
export function choiceWords({ cause, ids = [] }: DeadLetterChoice): string[] {
  return [...ids, ...(cause === undefined ? [] : ['--cause', cause])];
}

/**
 * Selects dead letters.
 *
 * @throws `NO_SUCH_DEAD_LETTER` if a named one is not among them
 */
export function choose(
  { commandLine }: Pick<Session, 'commandLine'>,
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
      `Not among the ${deadLetters.length} visible dead letters of ${name}: ${missing.join(', ')}. List them with ` +
        `\`${commandLine(shell`dlq list ${name} --verbose`)}\`. Another command that reads dead letters hides them for some seconds.`,
    );
  }
  return deadLetters.filter(
    ({ id, eventId, fingerprint = '' }) =>
      (ids.length === 0 || [id, eventId].some((known) => known !== undefined && ids.includes(known))) &&
      fingerprint.toLowerCase().includes(cause.toLowerCase()),
  );
}
