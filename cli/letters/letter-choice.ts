import { MailroomError } from '../../lambdas/runtime/errors.ts';
import { shell } from '../frame/shell.ts';
import type { DeadItem, DeathPlace } from './letters.ts';

/** Which letters of a place are meant. */
export interface LetterChoice {
  /** Those with this text in the fingerprint of their cause, upper or lower case. @default any cause */
  readonly cause?: string;
  /** Ids of letters or of events. @default all */
  readonly letter?: readonly string[];
}

/** The choice as words of a command to type. */
export function choiceWords({ cause, letter }: LetterChoice): string[] {
  const causeWords = cause === undefined ? [] : ['--cause', cause];
  return letter === undefined ? causeWords : [...causeWords, '--letter', ...letter];
}

/**
 * Picks letters.
 *
 * @throws `NO_SUCH_LETTER` when one that was named is not among them
 */
export function choose(
  { place }: Pick<DeathPlace, 'place'>,
  letters: readonly DeadItem[],
  { cause, letter: named }: LetterChoice,
): DeadItem[] {
  const isNamed = (name: string, { id, eventId }: DeadItem) => id === name || eventId === name;
  const missing = named?.filter((name) => !letters.some((letter) => isNamed(name, letter))) ?? [];
  if (missing.length > 0) {
    throw new MailroomError(
      'NO_SUCH_LETTER',
      `There is no letter ${missing.join(', ')} in ${place} among the ${letters.length} that can be seen now. mailroom ` +
        `${shell`dlq list ${place}`} shows them; somebody else who looks at letters hides them for some seconds.`,
    );
  }
  return letters.filter(
    (letter) =>
      (named === undefined || named.some((name) => isNamed(name, letter))) &&
      (cause === undefined || letter.fingerprint?.toLowerCase().includes(cause.toLowerCase())),
  );
}
