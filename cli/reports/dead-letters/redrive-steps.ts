import type { Clock } from '../../../lambdas/runtime/base/clock.ts';
import { eachOf } from '../../deployment/rows-reader.ts';
import type { DeadLetter } from './dead-letters.ts';

/** The dead letters of each step; the last step has the rest. */
const STEPS = [1, 10, Number.POSITIVE_INFINITY] as const;

/** The interval at which the progress of a step is checked. */
const LOOK_EVERY_MS = 1_000;

/** The progress of a redriven dead letter; `back`: it failed again. */
export type RedriveProgress =
  | { readonly state: 'done' | 'waiting' }
  | { readonly state: 'back'; readonly fingerprint: string; readonly sameCause: boolean };

/** Redrives the dead letters of one source. */
export interface Redriver {
  /** Sends a dead letter back. Safe to repeat and to interrupt: it may duplicate a message but never loses one. */
  resend(deadLetter: DeadLetter): Promise<void>;
  look(deadLetter: DeadLetter): Promise<RedriveProgress>;
}

/** The limits of a redrive. */
export interface Pace {
  readonly ratePerS: number;
  /** The redrive stops if no dead letter of a step was done for this long. */
  readonly waitMs: number;
}

/** The dead letters of a redrive by outcome. */
export interface Redriven {
  readonly done: readonly DeadLetter[];
  /** Failed again: the redrive stopped there. */
  readonly back: readonly {
    readonly deadLetter: DeadLetter;
    readonly fingerprint: string;
    readonly sameCause: boolean;
  }[];
  /** Redriven, but not done in time: the redrive stopped there. */
  readonly waiting: readonly DeadLetter[];
  /** Not redriven: they stay in the source. */
  readonly untried: readonly DeadLetter[];
}

/** Dependencies of {@link redriveInSteps}. */
export interface StepsDeps {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly progress: (line: string) => void;
}

/**
 * Redrives dead letters in three steps: 1, then 10, then the rest. After each it waits until the whole step is done. It stops if
 * one fails again or nothing is done in time: a cause that persists costs one dead letter, not all.
 */
export async function redriveInSteps(
  deps: StepsDeps,
  deadLetters: readonly DeadLetter[],
  redriver: Redriver,
  pace: Pace,
): Promise<Redriven> {
  const done: DeadLetter[] = [];
  let untried = deadLetters;
  let step = 0;
  for (const size of STEPS) {
    if (untried.length === 0 || deps.signal.aborted) break;
    step += 1;
    const of = `Step ${step} of ${stepsOf(deadLetters.length)}`;
    const sent = await sendStep(deps, { of, deadLetters: untried.slice(0, size) }, redriver, pace);
    untried = untried.slice(sent.length);
    const outcome = await waitForStep(deps, sent, redriver, pace.waitMs, (open) =>
      deps.progress(`Done: ${done.length + sent.length - open} of ${deadLetters.length}`),
    );
    done.push(...outcome.done);
    if (outcome.back.length + outcome.waiting.length > 0) return { ...outcome, done, untried };
  }
  return { done, back: [], waiting: [], untried };
}

/** The number of steps for this many dead letters. */
function stepsOf(count: number): number {
  let left = count;
  return STEPS.filter((size) => {
    const isUsed = left > 0;
    left -= size;
    return isUsed;
  }).length;
}

/** @returns the dead letters sent: all of the step, unless the user stopped it */
async function sendStep(
  { clock, signal, progress }: StepsDeps,
  { of, deadLetters }: { readonly of: string; readonly deadLetters: readonly DeadLetter[] },
  redriver: Redriver,
  { ratePerS }: Pace,
): Promise<readonly DeadLetter[]> {
  const startedAt = clock.now();
  const sent: DeadLetter[] = [];
  for (const deadLetter of deadLetters) {
    await clock.sleep(startedAt + (sent.length * 1_000) / ratePerS - clock.now(), signal);
    if (signal.aborted) break;
    await redriver.resend(deadLetter);
    sent.push(deadLetter);
    progress(`${of}: ${sent.length} of ${deadLetters.length} redriven`);
  }
  return sent;
}

/** Waits until every dead letter is done, one is back, or none was done for `waitMs`. */
async function waitForStep(
  { clock, signal }: StepsDeps,
  sent: readonly DeadLetter[],
  redriver: Redriver,
  waitMs: number,
  onProgress: (open: number) => void,
): Promise<Omit<Redriven, 'untried'>> {
  const done: DeadLetter[] = [];
  let open = sent;
  for (let deadline = clock.now() + waitMs; ; ) {
    const looks = await eachOf(open, async (deadLetter) => ({
      deadLetter,
      ...(await redriver.look(deadLetter)),
    }));
    const back = looks.flatMap((look) => (look.state === 'back' ? [look] : []));
    const doneNow = looks.filter(({ state }) => state === 'done').map(({ deadLetter }) => deadLetter);
    done.push(...doneNow);
    open = looks.filter(({ state }) => state === 'waiting').map(({ deadLetter }) => deadLetter);
    onProgress(open.length);
    if (doneNow.length > 0) deadline = clock.now() + waitMs;
    const over = open.length === 0 || back.length > 0 || clock.now() >= deadline || signal.aborted;
    if (over) return { done, back, waiting: open };
    await clock.sleep(LOOK_EVERY_MS, signal);
  }
}
