import { MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { PREFIX_MIN, typedId } from '../../deployment/event-prefix.ts';
import type { PlannedVerdicts } from '../../terminal/change.ts';
import { shell } from '../../terminal/shell.ts';
import { type DeadLetter, type DeadLetterSource, putBack, receiveDeadLetters } from './dead-letters.ts';
import { inboxId } from './standing.ts';

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
 * @param planned - the plan that was confirmed: its dead letters are selected
 * @returns them, and the choice with whole ids, which stays unique if other dead letters arrive
 * @throws `NO_SUCH_DEAD_LETTER` if a named one is not among them, `AMBIGUOUS_ID` if a beginning fits several ids
 */
export function choose(
  { commandLine }: Pick<Deployment, 'commandLine'>,
  { name }: Pick<DeadLetterSource, 'name'>,
  deadLetters: readonly DeadLetter[],
  wanted: DeadLetterChoice,
  planned?: PlannedVerdicts,
): { readonly chosen: DeadLetter[]; readonly choice: DeadLetterChoice } {
  if (planned !== undefined)
    return { chosen: deadLetters.filter(({ id }) => planned.has(id)), choice: wanted };
  const { cause = '', ids: given = [] } = wanted;
  const found = given.map((typed) => ({ typed, whole: wholeIds(deadLetters, typed) }));
  const missing = found.filter(({ whole }) => whole.length === 0).map(({ typed }) => typed);
  if (missing.length > 0) {
    throw new MailroomError(
      'NO_SUCH_DEAD_LETTER',
      `Not among the ${deadLetters.length} visible dead letters of ${name}: ${missing.join(', ')}. \`${commandLine(shell`why ${missing[0] ?? ''}`)}\` shows the state of an event. List them with ` +
        `\`${commandLine(shell`dlq list ${name} --verbose`)}\`. Another command that reads dead letters hides them for some seconds.`,
    );
  }
  for (const { typed, whole } of found) if (whole.length > 1) throw ambiguous(typed, whole);
  const ids = found.flatMap(({ whole }) => whole);
  const chosen = deadLetters.filter(
    (deadLetter) =>
      (given.length === 0 || idsOf(deadLetter).some((id) => ids.includes(id))) && hasCause(deadLetter, cause),
  );
  return { chosen, choice: { ids, cause: cause === '' ? undefined : cause } };
}

/** True if a dead letter's fingerprint has a text, in any case: a search for what an operator types. */
export function hasCause({ fingerprint = '' }: Pick<DeadLetter, 'fingerprint'>, typed: string): boolean {
  return fingerprint.toLowerCase().includes(typed.toLowerCase());
}

/** The most dead letters that are received to find one. */
const READ_MAX = 1_000;

/** If the command is interrupted, dead letters reappear after this many seconds. */
const HIDES_S = 15;

/**
 * Finds one dead letter, and leaves it in its source.
 *
 * @throws `NO_SUCH_DEAD_LETTER`, `AMBIGUOUS_ID`
 */
export async function findOne(
  deployment: Deployment,
  source: DeadLetterSource,
  given: string,
): Promise<DeadLetter> {
  const { deadLetters } = await receiveDeadLetters(deployment, source, { limit: READ_MAX, hideS: HIDES_S });
  await putBack(deployment.queues, source, deadLetters);
  const { chosen } = choose(deployment, source, deadLetters, { ids: [given] });
  const [only, ...others] = chosen;
  if (only !== undefined && others.length === 0) return only;
  throw ambiguous(
    given,
    chosen.map(({ id }) => id),
  );
}

/** The error for a text that fits several dead letters. */
function ambiguous(typed: string, ids: readonly string[]): MailroomError {
  return new MailroomError(
    'AMBIGUOUS_ID',
    `"${typed}" matches ${ids.length} dead letters: ${ids.slice(0, 10).join(', ')}${ids.length > 10 ? ', …' : ''}. Give more of the id.`,
  );
}

/** The id that was typed, or else those that begin with it. */
function wholeIds(deadLetters: readonly DeadLetter[], typed: string): string[] {
  const text = typedId(typed);
  const known = [...new Set(deadLetters.flatMap(idsOf))];
  const exact = known.filter((id) => id.toLowerCase() === text);
  if (exact.length > 0 || text.length < PREFIX_MIN) return exact;
  return known.filter((id) => id.toLowerCase().startsWith(text));
}

/** The ids by which a dead letter is named: its own, and that of its event or body. */
function idsOf(deadLetter: DeadLetter): readonly string[] {
  const { id, eventId, received } = deadLetter;
  return [id, eventId ?? (received === undefined ? id : inboxId(deadLetter))];
}
