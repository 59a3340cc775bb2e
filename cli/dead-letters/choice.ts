import { MailroomError } from '../../lambdas/runtime/errors.ts';
import type { Session } from '../frame/session.ts';
import { shell } from '../frame/shell.ts';
import { PREFIX_MIN, typedId } from '../reading/event-prefix.ts';
import type { DeadLetter } from './dead-letters.ts';
import type { DeadLetterSource } from './sources.ts';

/** A selection of the dead letters of a source. */
export interface DeadLetterChoice {
  /** Dead letters with this text in their fingerprint, in any case. @default any cause */
  readonly cause?: string | undefined;
  /** Ids of dead letters or of events, or at least their first 8 characters. @default all */
  readonly ids?: readonly string[] | undefined;
}

/** The choice as words of a command line. */
export function choiceWords({ cause, ids = [] }: DeadLetterChoice): string[] {
  return [...ids, ...(cause === undefined ? [] : ['--cause', cause])];
}

/**
 * Selects dead letters.
 *
 * @returns them, and the choice with whole ids, which stays unique if other dead letters arrive
 * @throws `NO_SUCH_DEAD_LETTER` if a named one is not among them, `AMBIGUOUS_ID` if a beginning fits several ids
 */
export function choose(
  { commandLine }: Pick<Session, 'commandLine'>,
  { name }: Pick<DeadLetterSource, 'name'>,
  deadLetters: readonly DeadLetter[],
  { cause = '', ids: given = [] }: DeadLetterChoice,
): { readonly chosen: DeadLetter[]; readonly choice: DeadLetterChoice } {
  const found = given.map((typed) => ({ typed, whole: wholeIds(deadLetters, typed) }));
  const missing = found.filter(({ whole }) => whole.length === 0).map(({ typed }) => typed);
  if (missing.length > 0) {
    throw new MailroomError(
      'NO_SUCH_DEAD_LETTER',
      `Not among the ${deadLetters.length} visible dead letters of ${name}: ${missing.join(', ')}. List them with ` +
        `\`${commandLine(shell`dlq list ${name} --verbose`)}\`. Another command that reads dead letters hides them for some seconds.`,
    );
  }
  for (const { typed, whole } of found) if (whole.length > 1) throw ambiguous(typed, whole);
  const ids = found.flatMap(({ whole }) => whole);
  const chosen = deadLetters.filter(
    ({ id, eventId = id, fingerprint = '' }) =>
      (given.length === 0 || ids.includes(id) || ids.includes(eventId)) &&
      fingerprint.toLowerCase().includes(cause.toLowerCase()),
  );
  return { chosen, choice: { ids, cause: cause === '' ? undefined : cause } };
}

/** The error for a text that fits several dead letters. */
export function ambiguous(typed: string, ids: readonly string[]): MailroomError {
  return new MailroomError(
    'AMBIGUOUS_ID',
    `"${typed}" matches ${ids.length} dead letters: ${ids.slice(0, 10).join(', ')}${ids.length > 10 ? ', …' : ''}. Give more of the id.`,
  );
}

/** The id that was typed, or else those that begin with it. */
function wholeIds(deadLetters: readonly DeadLetter[], typed: string): string[] {
  const text = typedId(typed);
  const known = [...new Set(deadLetters.flatMap(({ id, eventId = id }) => [id, eventId]))];
  const exact = known.filter((id) => id.toLowerCase() === text);
  if (exact.length > 0 || text.length < PREFIX_MIN) return exact;
  return known.filter((id) => id.toLowerCase().startsWith(text));
}
