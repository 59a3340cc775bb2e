import type { Clock } from '../../../lambdas/runtime/base/clock.ts';
import { errorCode, errorMessage } from '../../../lambdas/runtime/base/errors.ts';
import { eachOf } from '../../deployment/rows-reader.ts';
import type { DeadLetter } from '../../reports/dead-letters/dead-letters.ts';
import { many } from '../../terminal/output.ts';
import type { Terminal } from '../../terminal/terminal.ts';
import {
  causeOf,
  createRedriveRun,
  type FailedAgain,
  type FailedSend,
  type LetterState,
  type RedriveProgress,
  type RedriveRun,
  type Untried,
} from './redrive-run.ts';

/** The dead letters of each cause in each step; the last step has the rest. */
const STEPS = [1, 10, Number.POSITIVE_INFINITY] as const;

/** The interval at which the progress of a step is checked. */
const LOOK_EVERY_MS = 1_000;

/** Redrives the dead letters of one source. */
export interface Redriver {
  /** Sends a dead letter back. Safe to repeat and to interrupt: it may duplicate a message but never loses one. */
  resend(deadLetter: DeadLetter): Promise<void>;
  look(deadLetter: DeadLetter): Promise<RedriveProgress>;
}

/** The limits of a redrive. */
export interface Pace {
  readonly ratePerS: number;
  /** A step ends if no dead letter had a result for this long. */
  readonly waitMs: number;
  /** Tries every dead letter once, whatever fails. @default false */
  readonly keepGoing?: boolean | undefined;
}

/** The dead letters of a redrive by outcome. */
export interface Redriven {
  readonly done: readonly DeadLetter[];
  /** Ended meanwhile, though not by a run of its handler: their dead letters are deleted. */
  readonly handled: readonly DeadLetter[];
  /** Absorbed without a run, because a number from their own on was applied or passed over meanwhile: they stay in the source. */
  readonly superseded: readonly DeadLetter[];
  /** Failed again. */
  readonly back: readonly (FailedAgain & { readonly deadLetter: DeadLetter })[];
  /** Failed with another cause, and tried again by their consumer. @default none */
  readonly retrying?: readonly { readonly deadLetter: DeadLetter; readonly fingerprint: string }[];
  /** Their sends failed. They stay in the source, and may also be in the queue. @default none */
  readonly failed?: readonly (FailedSend & { readonly deadLetter: DeadLetter })[];
  /** Redriven, without a result in time. */
  readonly waiting: readonly DeadLetter[];
  /** Not redriven: they stay in the source. */
  readonly untried: readonly Untried[];
}

/** Dependencies of {@link redriveInSteps}. */
export interface StepsDeps extends Pick<Terminal, 'signal' | 'progress' | 'say'> {
  readonly clock: Clock;
}

/**
 * Redrives dead letters in three steps: 1 of each cause, then 10 of each, then the rest. After each it waits until the step has results. A cause
 * that persists costs one dead letter, not all, and does not stop the others: see {@link createRedriveRun}.
 *
 * @throws the error of the first send, if nothing was redriven
 */
export async function redriveInSteps(
  deps: StepsDeps,
  deadLetters: readonly DeadLetter[],
  redriver: Redriver,
  pace: Pace,
): Promise<Redriven> {
  const run = createRedriveRun(deadLetters, pace.keepGoing ?? false);
  const errors: unknown[] = [];
  const watch = watchOf(deps, deadLetters, redriver, run);
  let step = 0;
  for (const size of STEPS) {
    const letters = deps.signal.aborted ? [] : run.ofEachCause(size);
    if (letters.length === 0) continue;
    step += 1;
    const reached = { step, steps: Math.max(step, stepsOf(deadLetters)) };
    errors.push(...(await sendStep(deps, { reached, letters }, redriver, run, watch, pace)));
    await waitForStep(deps, letters, run, watch, pace.waitMs);
  }
  const redriven = redrivenOf(deadLetters, run, deps.signal.aborted);
  if (errors.length > 0 && redriven.untried.length + errors.length === deadLetters.length) throw errors[0];
  return redriven;
}

/** The number of steps for these dead letters. */
function stepsOf(deadLetters: readonly DeadLetter[]): number {
  const counts = new Map<string, number>();
  for (const deadLetter of deadLetters)
    counts.set(causeOf(deadLetter), (counts.get(causeOf(deadLetter)) ?? 0) + 1);
  let left = Math.max(0, ...counts.values());
  return STEPS.filter((size) => {
    const isUsed = left > 0;
    left -= size;
    return isUsed;
  }).length;
}

/** The dead letters of a step. */
interface SentStep {
  readonly reached: { readonly step: number; readonly steps: number };
  readonly letters: readonly DeadLetter[];
}

/** Looks at what was redriven. */
interface Watch {
  look(): Promise<void>;
  /** When a dead letter last got a result, and of the last look. */
  changedAt(): number;
  lookedAt(): number;
}

/** The states that may still change. */
const UNSETTLED: ReadonlySet<LetterState['state'] | undefined> = new Set([
  'waiting',
  'overdue',
  'retrying',
  'back',
]);

function watchOf(
  { clock, progress, say }: StepsDeps,
  deadLetters: readonly DeadLetter[],
  redriver: Redriver,
  run: RedriveRun,
): Watch {
  let [changedAt, lookedAt] = [clock.now(), clock.now()];
  const told = new Set<string>();
  return {
    changedAt: () => changedAt,
    lookedAt: () => lookedAt,
    look: async () => {
      lookedAt = clock.now();
      const open = deadLetters.filter((deadLetter) => UNSETTLED.has(run.stateOf(deadLetter)?.state));
      await eachOf(open, async (deadLetter) => {
        // It was redriven: a look that fails is repeated.
        const now = await redriver.look(deadLetter).catch((): RedriveProgress => ({ state: 'waiting' }));
        // Between two attempts it is as it was after the first.
        if (now.state === 'waiting') return;
        if (now.state !== run.stateOf(deadLetter)?.state) changedAt = clock.now();
        run.set(deadLetter, now);
      });
      for (const line of leftOutLines(run, told)) say(line);
      const counted = (...states: readonly LetterState['state'][]) =>
        deadLetters.filter((one) => states.some((state) => run.stateOf(one)?.state === state)).length;
      const over = counted('done', 'handled', 'superseded');
      const failed = counted('back', 'retrying', 'failed');
      progress(`Done: ${over} of ${deadLetters.length}${failed === 0 ? '' : `, ${failed} failed again`}`, {
        done: over,
        of: deadLetters.length,
      });
    },
  };
}

/** Names each cause that is not tried any more, once. */
function leftOutLines(run: RedriveRun, told: Set<string>): string[] {
  const byCause = new Map<string, Untried[]>();
  for (const untried of run.untried('stopped')) {
    const cause = causeOf(untried.deadLetter);
    if (untried.why === 'failed-again' || untried.why === 'too-many-failures')
      byCause.set(cause, [...(byCause.get(cause) ?? []), untried]);
  }
  return [...byCause].flatMap(([cause, untried]) => {
    if (told.has(cause)) return [];
    told.add(cause);
    const why = untried[0]?.why === 'failed-again' ? 'it failed again' : 'too many failed with other causes';
    return [`Not tried: ${many(untried.length, 'dead letter')} of ${cause}: ${why}.`];
  });
}

/** @returns the errors of the sends that failed */
async function sendStep(
  { clock, signal, progress }: StepsDeps,
  { reached, letters }: SentStep,
  redriver: Redriver,
  run: RedriveRun,
  watch: Watch,
  { ratePerS, waitMs }: Pace,
): Promise<unknown[]> {
  const { step, steps } = reached;
  const errors: unknown[] = [];
  let sent = 0;
  let lastAt = clock.now();
  for (let nextAt = clock.now(); sent + errors.length < letters.length; ) {
    await clock.sleep(nextAt - clock.now(), signal);
    if (signal.aborted) return errors;
    if (clock.now() - watch.lookedAt() >= LOOK_EVERY_MS) await watch.look();
    const { next, left } = run.next(letters);
    if (left.length === 0 || signal.aborted) return errors;
    if (next === undefined) {
      if (clock.now() - Math.max(lastAt, watch.changedAt()) >= waitMs) return errors;
      nextAt = clock.now() + LOOK_EVERY_MS;
      continue;
    }
    nextAt = Math.max(nextAt, clock.now()) + 1_000 / ratePerS;
    try {
      await redriver.resend(next);
      run.set(next, { state: 'waiting' });
    } catch (error) {
      errors.push(error);
      run.set(next, { state: 'failed', code: errorCode(error), message: errorMessage(error) });
      continue;
    }
    sent += 1;
    lastAt = clock.now();
    progress(`Step ${step} of ${steps}: ${sent} of ${letters.length} redriven`, reached);
  }
  return errors;
}

/** Waits until every dead letter of the step has a result, or none got one for `waitMs`. */
async function waitForStep(
  { clock, signal }: StepsDeps,
  letters: readonly DeadLetter[],
  run: RedriveRun,
  watch: Watch,
  waitMs: number,
): Promise<void> {
  const inState = (...states: readonly LetterState['state'][]) =>
    letters.filter((letter) => states.some((state) => run.stateOf(letter)?.state === state));
  for (const startedAt = clock.now(); ; ) {
    await watch.look();
    const isLate = clock.now() - Math.max(startedAt, watch.changedAt()) >= waitMs;
    // The next attempt may process one that failed with another cause.
    if (inState('waiting', 'retrying').length === 0 || isLate || signal.aborted) break;
    await clock.sleep(LOOK_EVERY_MS, signal);
  }
  for (const letter of inState('waiting')) run.set(letter, { state: 'overdue' });
}

function redrivenOf(deadLetters: readonly DeadLetter[], run: RedriveRun, isStopped: boolean): Redriven {
  const found = <State extends LetterState['state']>(wanted: State) =>
    deadLetters.flatMap((deadLetter) => {
      const state = run.stateOf(deadLetter);
      return state?.state === wanted
        ? [{ ...(state as Extract<LetterState, { readonly state: State }>), deadLetter }]
        : [];
    });
  const letters = (wanted: LetterState['state']) => found(wanted).map(({ deadLetter }) => deadLetter);
  return {
    done: letters('done'),
    handled: letters('handled'),
    superseded: letters('superseded'),
    back: found('back'),
    retrying: found('retrying'),
    failed: found('failed'),
    waiting: letters('overdue'),
    untried: run.untried(isStopped ? 'stopped' : 'no-result'),
  };
}
