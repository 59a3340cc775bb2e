import type { Clock } from '../../lambdas/runtime/clock.ts';
import { eachOf } from '../reading/rows-reader.ts';
import type { DeadLetter } from './dead-letters.ts';

/** How many dead letters go first, and second; then go the rest. */
const STEPS = [1, 10, Number.POSITIVE_INFINITY] as const;

/** How often to look whether the dead letters of a step have been processed. */
const LOOK_EVERY_MS = 1_000;

/** What has become of a dead letter since it was redriven; `back`: it failed again. */
export type RedriveProgress =
  | { readonly state: 'done' | 'waiting' }
  | { readonly state: 'back'; readonly fingerprint: string; readonly sameCause: boolean };

/** How the dead letters of one source are redriven. */
export interface Redriver {
  /** Sends a dead letter back to where it is worked on. Safe to repeat and to interrupt: it may duplicate a message, never lose one. */
  resend(deadLetter: DeadLetter): Promise<void>;
  look(deadLetter: DeadLetter): Promise<RedriveProgress>;
}

/** How careful a redrive is. */
export interface Pace {
  readonly ratePerS: number;
  /** The redrive stops when no dead letter of a step was done for this long. */
  readonly waitMs: number;
}

/** What became of the dead letters of a redrive. */
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
  /** Not redriven: they are where they were. */
  readonly untried: readonly DeadLetter[];
}

/** What the steps need. */
export interface StepsDeps {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly progress: (line: string) => void;
}

/**
 * Redrives dead letters in three steps: 1, then 10, then the rest. After each it waits until the whole step is done; when one
 * fails again, or nothing is done in time, it goes no further: a cause that is still there costs one dead letter, not all.
 */
export async function redriveInSteps(
  deps: StepsDeps,
  deadLetters: readonly DeadLetter[],
  redriver: Redriver,
  pace: Pace,
): Promise<Redriven> {
  const done: DeadLetter[] = [];
  let untried = deadLetters;
  for (const size of STEPS) {
    if (untried.length === 0 || deps.signal.aborted) break;
    const sent = await sendStep(deps, untried.slice(0, size), redriver, pace);
    untried = untried.slice(sent.length);
    const step = await waitForStep(deps, sent, redriver, pace.waitMs, (open) =>
      deps.progress(`${done.length + sent.length - open} of ${deadLetters.length} done`),
    );
    done.push(...step.done);
    if (step.back.length > 0 || step.waiting.length > 0) return { ...step, done, untried };
  }
  return { done, back: [], waiting: [], untried };
}

/** @returns what was sent: all of it, unless the user asked to stop */
async function sendStep(
  { clock, signal, progress }: StepsDeps,
  step: readonly DeadLetter[],
  redriver: Redriver,
  { ratePerS }: Pace,
): Promise<readonly DeadLetter[]> {
  const startedAt = clock.now();
  const sent: DeadLetter[] = [];
  for (const deadLetter of step) {
    await clock.sleep(startedAt + (sent.length * 1_000) / ratePerS - clock.now(), signal);
    if (signal.aborted) break;
    await redriver.resend(deadLetter);
    sent.push(deadLetter);
    progress(`${sent.length} of ${step.length} of this step redriven`);
  }
  return sent;
}

/** Waits until every dead letter is done, or one is back, or none was done for `waitMs`. */
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
