import { MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { PREFIX_MIN, typedId } from '../../deployment/event-prefix.ts';
import type { PlannedVerdicts } from '../../terminal/change.ts';
import { shell } from '../../terminal/shell.ts';
import {
  type DeadLetter,
  type DeadLetterSource,
  putBack,
  type ReceivedDeadLetters,
  receiveDeadLetters,
} from './dead-letters.ts';
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

/** The sweep reads each source every minute, which hides its dead letters for a moment: they are looked for again. */
const LOOKS = 5;
const LOOK_EVERY_MS = 1_000;

/**
 * Receives the dead letters of a source for a plan or a change. Those of a confirmed plan may be anywhere in the queue, because SQS
 * returns dead letters in any order, so all are received.
 *
 * @param options - as those of `receiveDeadLetters`; a confirmed plan has no limit
 */
export async function receiveForChange(
  deployment: Pick<Deployment, 'directory' | 'table' | 'queues' | 'clock' | 'terminal'>,
  source: DeadLetterSource,
  {
    limit,
    hideS,
    planned,
  }: { readonly limit: number; readonly hideS: number; readonly planned?: PlannedVerdicts | undefined },
): Promise<ReceivedDeadLetters> {
  const { clock, terminal } = deployment;
  const { signal } = terminal;
  if (planned === undefined) return receiveDeadLetters(deployment, source, { limit, hideS });
  const found = new Map<string, DeadLetter>();
  let total = 0;
  for (let look = 0; look < LOOKS && !signal.aborted; look += 1) {
    if (look > 0) await clock.sleep(LOOK_EVERY_MS, signal);
    const received = await receiveDeadLetters(deployment, source, { limit: Number.POSITIVE_INFINITY, hideS });
    for (const deadLetter of received.deadLetters) found.set(deadLetter.id, deadLetter);
    total = Math.max(total, received.total);
    if ([...planned.keys()].every((id) => found.has(id))) break;
  }
  return { deadLetters: [...found.values()], total };
}

/** A dead letter of a confirmed plan whose verdict is another one now: it is left alone. */
export interface ChangedDeadLetter {
  /** Without its details if it has gone. */
  readonly deadLetter: DeadLetter;
  /** The change, as a sentence. */
  readonly text: string;
}

/** The dead letters that a confirmed plan still describes, and those that it no longer does. */
export interface AsPlanned<Judged> {
  readonly same: readonly Judged[];
  readonly changed: readonly ChangedDeadLetter[];
}

/**
 * Compares dead letters with the plan that the operator has confirmed. Without a plan, nothing has changed.
 *
 * @param judged - the dead letters of the plan that are visible now
 * @param deadLetterOf - the dead letter of a judgment
 * @param verdictOf - its verdict now, in the words of the plan
 */
export function asPlanned<Judged>(
  planned: PlannedVerdicts | undefined,
  judged: readonly Judged[],
  deadLetterOf: (one: Judged) => DeadLetter,
  verdictOf: (one: Judged) => string,
): AsPlanned<Judged> {
  if (planned === undefined) return { same: judged, changed: [] };
  const isSame = (one: Judged) => planned.get(deadLetterOf(one).id) === verdictOf(one);
  const visible = new Set(judged.map((one) => deadLetterOf(one).id));
  const gone = [...planned.keys()].filter((id) => !visible.has(id));
  return {
    same: judged.filter(isSame),
    changed: [
      ...judged
        .filter((one) => !isSame(one))
        .map((one) => ({
          deadLetter: deadLetterOf(one),
          text: `It was ${planned.get(deadLetterOf(one).id)} in the plan and is ${verdictOf(one)} now.`,
        })),
      ...gone.map((id) => ({
        deadLetter: { ...NOTHING_KNOWN, id },
        text: 'It is no longer in the source, or another command is reading it.',
      })),
    ],
  };
}

const NOTHING_KNOWN = {
  eventId: undefined,
  type: undefined,
  sentAt: undefined,
  expiresAt: undefined,
  fingerprint: undefined,
  lastError: undefined,
};

/** The ids by which a dead letter is named: its own, and that of its event or body. */
function idsOf(deadLetter: DeadLetter): readonly string[] {
  const { id, eventId, received } = deadLetter;
  return [id, eventId ?? (received === undefined ? id : inboxId(deadLetter))];
}
