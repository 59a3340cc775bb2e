import type { DeadLetter } from '../../reports/dead-letters/dead-letters.ts';
import type { JudgedDeadLetter } from '../../reports/dead-letters/redrive-plan.ts';
import { outcomeWords, untriedWords } from '../../reports/dead-letters/verdict-words.ts';
import { fingerprintText } from '../../terminal/listing.ts';
import { clipped, detailedTable } from '../../terminal/output.ts';
import type { UntriedWhy } from './redrive-run.ts';
import type { Redriven } from './redrive-steps.ts';

/** The outcomes of a redrive, in the order of its table. */
const OUTCOMES = [
  'processed',
  'deleted',
  'superseded',
  'failed-again',
  'retrying',
  'failed',
  'waiting',
  'untried',
  'kept',
] as const;

/** The outcome for a dead letter of the plan. */
type RedriveOutcome = (typeof OUTCOMES)[number];

/** The outcome for a dead letter, and why. */
export interface LetterOutcome {
  readonly outcome: RedriveOutcome;
  /** The cause of its new failure. */
  readonly failedAgain: string | null;
  /** Why it was not tried. */
  readonly notTried: UntriedWhy | null;
}

/** The dead letters of one cause with one outcome. */
export interface CauseOutcome extends LetterOutcome {
  /** Why they are dead letters. */
  readonly fingerprint: string | null;
  readonly count: number;
  /** The event id of the first, or else the id of its dead letter. */
  readonly example: string;
}

/** Finds the outcomes of a redrive by the id of a dead letter: a report has copies. */
export function outcomesOf(redriven: Redriven): (deadLetter: JudgedDeadLetter) => LetterOutcome {
  const found = new Map<string, LetterOutcome>();
  const add = (letters: readonly DeadLetter[], outcome: RedriveOutcome) => {
    for (const { id } of letters) found.set(id, { outcome, failedAgain: null, notTried: null });
  };
  add(redriven.done, 'processed');
  add(redriven.handled, 'deleted');
  add(redriven.superseded, 'superseded');
  add(redriven.waiting, 'waiting');
  const { back, retrying = [], failed = [], untried } = redriven;
  for (const { deadLetter, fingerprint } of back)
    found.set(deadLetter.id, { outcome: 'failed-again', failedAgain: fingerprint, notTried: null });
  for (const { deadLetter, fingerprint } of retrying)
    found.set(deadLetter.id, { outcome: 'retrying', failedAgain: fingerprint, notTried: null });
  for (const { deadLetter } of failed)
    found.set(deadLetter.id, { outcome: 'failed', failedAgain: null, notTried: null });
  for (const { deadLetter, why } of untried)
    found.set(deadLetter.id, { outcome: 'untried', failedAgain: null, notTried: why });
  return ({ id, verdict }) =>
    found.get(id) ?? {
      outcome: verdict === 'handled' ? 'deleted' : 'kept',
      failedAgain: null,
      notTried: null,
    };
}

/** Groups the dead letters that a redrive could have run by outcome and cause. */
export function causeOutcomes(judged: readonly JudgedDeadLetter[], redriven: Redriven): CauseOutcome[] {
  const outcomeOf = outcomesOf(redriven);
  const groups = new Map<string, CauseOutcome>();
  for (const deadLetter of judged) {
    const outcome = outcomeOf(deadLetter);
    if (outcome.outcome === 'kept') continue;
    const { id, eventId = id, fingerprint = null } = deadLetter;
    const key = JSON.stringify([fingerprint, ...Object.values(outcome)]);
    const { count = 0, example = eventId } = groups.get(key) ?? {};
    groups.set(key, { ...outcome, fingerprint, count: count + 1, example });
  }
  const rank = ({ outcome }: CauseOutcome) => OUTCOMES.indexOf(outcome);
  return [...groups.values()].sort((a, b) => rank(a) - rank(b) || b.count - a.count);
}

/** The table that ends a redrive. @param source - the name of the dead-letter source */
export function causesText(causes: readonly CauseOutcome[], source: string): string {
  const rows = causes.map(({ outcome, failedAgain, notTried, fingerprint, count, example }) => ({
    cells: [count, outcomeWords(outcome, source).label, clipped(example)],
    details: [
      fingerprintText(fingerprint ?? '-'),
      ...(failedAgain === null || failedAgain === fingerprint ? [] : [`now: ${clipped(failedAgain)}`]),
      ...(notTried === null ? [] : [untriedWords(notTried)]),
    ],
  }));
  return detailedTable(['count', 'outcome', 'example'], rows);
}
