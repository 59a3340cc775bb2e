import type { DeadLetter } from '../../reports/dead-letters/dead-letters.ts';
import type { JudgedDeadLetter } from '../../reports/dead-letters/redrive-plan.ts';

/**
 * The failures with other causes that a redrive goes past, unless more were processed: more than one provider's unknown customers, and
 * few enough for a deployment in which every message fails.
 */
export const OTHER_FAILURES_MAX = 20;

/**
 * Why a dead letter was not tried: its cause `failed-again` in this run; as many of its cause, or of all, failed with other causes as
 * were processed (`too-many-failures`); those of its cause that were redriven have `no-result`; an earlier event of its aggregate is
 * not processed (`predecessor`); or the redrive was `stopped`.
 */
export type UntriedWhy = 'failed-again' | 'too-many-failures' | 'no-result' | 'predecessor' | 'stopped';

/** A dead letter that was not tried. */
export interface Untried {
  readonly deadLetter: DeadLetter;
  readonly why: UntriedWhy;
}

/**
 * The progress of a redriven dead letter; `handled`: an operator, or an event in its place, has ended it meanwhile; `superseded`: it was absorbed
 * without a run; `retrying`: it failed with another cause, and its consumer tries it again; `back`: it was rejected again, or failed with the same
 * cause.
 */
export type RedriveProgress =
  | { readonly state: 'done' | 'handled' | 'waiting' | 'superseded' }
  | { readonly state: 'retrying'; readonly fingerprint: string }
  | ({ readonly state: 'back' } & FailedAgain);

/** The failure of a redriven dead letter. */
export interface FailedAgain {
  readonly fingerprint: string;
  readonly sameCause: boolean;
  /** It ended before it ran: an operator discarded or replaced it, or a later event superseded it. @default false */
  readonly neverRan?: boolean | undefined;
}

/** A send that failed, and the error as text. */
export interface FailedSend {
  readonly code: string;
  readonly message: string;
}

/** The state of a dead letter in a redrive; `overdue`: it had no result when its step ended. */
export type LetterState =
  | RedriveProgress
  | { readonly state: 'overdue' }
  | ({ readonly state: 'failed' } & FailedSend);

/** The numbers of dead letters that decide whether others are tried. */
interface CauseTally {
  done: number;
  /** With other causes than their own. */
  failed: number;
  /** Without a result. */
  open: number;
}

/** The states of the dead letters of a redrive, and which of them it tries next. */
export interface RedriveRun {
  stateOf(deadLetter: DeadLetter): LetterState | undefined;
  set(deadLetter: DeadLetter, state: LetterState): void;
  /** Returns up to this many untried dead letters of each cause that may be tried, none before an earlier event of its aggregate. */
  ofEachCause(size: number): readonly DeadLetter[];
  /**
   * Chooses the next dead letter of a step.
   *
   * @returns `undefined` if none may be sent until others have a result; and those of the step that may still be tried
   */
  next(step: readonly DeadLetter[]): {
    readonly next: DeadLetter | undefined;
    readonly left: readonly DeadLetter[];
  };
  /** Why the others were not tried. @param otherwise - the reason of those that could have been tried next */
  untried(otherwise: UntriedWhy): readonly Untried[];
}

/** The cause of a dead letter. */
export function causeOf({ fingerprint = '' }: Pick<DeadLetter, 'fingerprint'>): string {
  return fingerprint;
}

/**
 * Creates the run of a redrive. Its rules:
 *
 * 1. A cause that failed again is not fixed, so no other dead letter of it is tried. A failure with another cause says the same of that
 *    cause, unless one of its dead letters was processed.
 * 2. Otherwise a failure with another cause stops nothing, until {@link OTHER_FAILURES_MAX} failed and no more were processed. Once one has failed,
 *    those without a result count as failures, so no more are at risk.
 * 3. An event behind one that is not processed would wait in vain: it is not tried, and its failure says nothing about its cause.
 *
 * @param keepGoing - rule 3 alone holds
 */
export function createRedriveRun(deadLetters: readonly DeadLetter[], keepGoing: boolean): RedriveRun {
  const states = new Map<DeadLetter, LetterState>();
  const before = predecessors(deadLetters);
  const stateOf = (deadLetter: DeadLetter) => states.get(deadLetter);

  /** Its predecessor, or the one before that, is not processed, and was not sent just now. */
  const isBehind = (deadLetter: DeadLetter): boolean => {
    const earlier = before.get(deadLetter);
    const state = earlier && stateOf(earlier)?.state;
    return state !== undefined && !PASSES.has(state);
  };

  /** Judges the dead letters by the results so far. */
  const judged = () => {
    const judgment = keepGoing ? undefined : judge(deadLetters, stateOf, isBehind);
    const known = new Map<DeadLetter, UntriedWhy | undefined>();
    const whyNot = (deadLetter: DeadLetter): UntriedWhy | undefined => {
      if (known.has(deadLetter)) return known.get(deadLetter);
      const earlier = before.get(deadLetter);
      const isLeft = earlier !== undefined && stateOf(earlier) === undefined && whyNot(earlier) !== undefined;
      const why = isLeft || isBehind(deadLetter) ? 'predecessor' : judgment?.whyNot(causeOf(deadLetter));
      known.set(deadLetter, why);
      return why;
    };
    return { whyNot, holds: (cause: string) => judgment?.holds(cause) ?? false };
  };

  /** Its predecessor was sent, or is in the same step before it. */
  const isNext = (deadLetter: DeadLetter, chosen?: ReadonlySet<DeadLetter>): boolean => {
    const earlier = before.get(deadLetter);
    return earlier === undefined || stateOf(earlier) !== undefined || chosen?.has(earlier) === true;
  };

  return {
    stateOf,
    set: (deadLetter, state) => states.set(deadLetter, state),
    ofEachCause: (size) => {
      const { whyNot } = judged();
      const taken = new Map<string, number>();
      const chosen = new Set<DeadLetter>();
      for (const deadLetter of deadLetters) {
        const count = taken.get(causeOf(deadLetter)) ?? 0;
        if (stateOf(deadLetter) !== undefined || count >= size || !isNext(deadLetter, chosen)) continue;
        if (whyNot(deadLetter) !== undefined) continue;
        taken.set(causeOf(deadLetter), count + 1);
        chosen.add(deadLetter);
      }
      return [...chosen];
    },
    next: (step) => {
      const { whyNot, holds } = judged();
      const left = step.filter(
        (deadLetter) => stateOf(deadLetter) === undefined && whyNot(deadLetter) === undefined,
      );
      const next = left.find((deadLetter) => isNext(deadLetter) && !holds(causeOf(deadLetter)));
      return { next, left };
    },
    untried: (otherwise) => {
      const { whyNot } = judged();
      return deadLetters
        .filter((deadLetter) => stateOf(deadLetter) === undefined)
        .map((deadLetter) => ({ deadLetter, why: whyNot(deadLetter) ?? otherwise }));
    },
  };
}

/** The states of an event whose successor may be sent: it was processed or passed over, or is ahead in the queue. */
const PASSES: ReadonlySet<LetterState['state']> = new Set(['done', 'handled', 'superseded', 'waiting']);

/** The causes by the results so far. */
interface JudgedCauses {
  whyNot(cause: string): UntriedWhy | undefined;
  /** True if no more of the cause may be sent until others have a result. */
  holds(cause: string): boolean;
}

function judge(
  deadLetters: readonly DeadLetter[],
  stateOf: RedriveRun['stateOf'],
  isBehind: (deadLetter: DeadLetter) => boolean,
): JudgedCauses {
  const total: CauseTally = { done: 0, failed: 0, open: 0 };
  const tallies = new Map<string, CauseTally>();
  const [failedAgain, failedElsewhere, late] = [new Set<string>(), new Set<string>(), new Set<string>()];
  for (const deadLetter of deadLetters) {
    const state = stateOf(deadLetter);
    if (state === undefined) continue;
    const cause = causeOf(deadLetter);
    const tally = tallies.get(cause) ?? { done: 0, failed: 0, open: 0 };
    tallies.set(cause, tally);
    count(state, [tally, total]);
    if (isBehind(deadLetter)) continue;
    if (state.state === 'overdue') late.add(cause);
    if (state.state !== 'back') continue;
    if (state.sameCause) failedAgain.add(cause);
    (state.fingerprint === cause ? failedAgain : failedElsewhere).add(state.fingerprint);
  }
  const of = (cause: string): CauseTally => tallies.get(cause) ?? { done: 0, failed: 0, open: 0 };
  return {
    whyNot: (cause) => {
      if (failedAgain.has(cause) || (failedElsewhere.has(cause) && of(cause).done === 0))
        return 'failed-again';
      if (isTooMany(of(cause).failed, of(cause)) || isTooMany(total.failed, total))
        return 'too-many-failures';
      return late.has(cause) ? 'no-result' : undefined;
    },
    holds: (cause) =>
      [of(cause), total].some((tally) => tally.failed > 0 && isTooMany(tally.failed + tally.open, tally)),
  };
}

function isTooMany(failed: number, { done }: CauseTally): boolean {
  return failed >= Math.max(OTHER_FAILURES_MAX, done);
}

function count(state: LetterState, tallies: readonly CauseTally[]): void {
  const isOther = state.state === 'back' && !state.sameCause;
  for (const tally of tallies) {
    if (state.state === 'done' || state.state === 'handled' || state.state === 'superseded') tally.done += 1;
    else if (state.state === 'waiting' || state.state === 'overdue') tally.open += 1;
    else if (isOther || state.state === 'retrying' || state.state === 'failed') tally.failed += 1;
  }
}

/** The event before each in the order of its aggregate, of those that are redriven. */
function predecessors(deadLetters: readonly DeadLetter[]): ReadonlyMap<DeadLetter, DeadLetter> {
  const byAggregate = new Map<string, JudgedDeadLetter[]>();
  for (const deadLetter of deadLetters as readonly JudgedDeadLetter[]) {
    if (deadLetter.place === undefined) continue;
    const key = JSON.stringify(deadLetter.place.aggregate);
    byAggregate.set(key, [...(byAggregate.get(key) ?? []), deadLetter]);
  }
  const found = new Map<DeadLetter, DeadLetter>();
  for (const same of byAggregate.values()) {
    const sorted = same.toSorted((a, b) => sequenceOf(a) - sequenceOf(b));
    for (const deadLetter of sorted) {
      // Two dead letters of one number are duplicates of one event.
      const earlier = sorted.findLast((other) => sequenceOf(other) < sequenceOf(deadLetter));
      if (earlier !== undefined) found.set(deadLetter, earlier);
    }
  }
  return found;
}

function sequenceOf({ place }: JudgedDeadLetter): number {
  return place?.sequence ?? 0;
}
