import type { Clock } from '../../lambdas/runtime/clock.ts';
import { eachOf } from '../reading/rows-reader.ts';
import type { DeadItem } from './letters.ts';

/** How many letters go first, and second; then go the rest. */
const STEPS = [1, 10, Number.POSITIVE_INFINITY] as const;

/** How often it is looked whether the letters of a step have been processed. */
const LOOK_EVERY_MS = 1_000;

/** What has become of a letter since it was redriven; `back`: it failed again. */
export type Fate =
  | { readonly state: 'done' | 'waiting' }
  | { readonly state: 'back'; readonly fingerprint: string; readonly sameCause: boolean };

/** How the letters of one place are redriven. */
export interface Redriver {
  /** Gives a letter back to where it is worked on. Safe to repeat, and to be interrupted: it may double a message, never lose one. */
  resend(letter: DeadItem): Promise<void>;
  /** What has become of it. */
  look(letter: DeadItem): Promise<Fate>;
  /** Moves all that is left in the place, where that is meant and AWS can. @returns whether it was begun */
  moveRest?: ((ratePerS: number) => Promise<boolean>) | undefined;
}

/** How careful a redrive is. */
export interface Pace {
  readonly ratePerS: number;
  /** The redrive stops when no letter of a step was done for so long. */
  readonly waitMs: number;
}

/** What became of the letters of a redrive. */
export interface Redriven {
  readonly done: readonly DeadItem[];
  /** Failed again: the redrive stopped there. */
  readonly back: readonly {
    readonly letter: DeadItem;
    readonly fingerprint: string;
    readonly sameCause: boolean;
  }[];
  /** Redriven, but nothing has become of them in time: the redrive stopped there. */
  readonly waiting: readonly DeadItem[];
  /** Not redriven: they are where they were. */
  readonly untried: readonly DeadItem[];
}

/** What the steps need. */
export interface StepsDeps {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly progress: (line: string) => void;
}

/**
 * Redrives letters in three steps: 1, then 10, then the rest. After each it waits until all letters of the step are done;
 * when one fails again, or nothing is done in time, it goes no further: a cause that is still there costs one letter, not all.
 */
export async function redriveInSteps(
  deps: StepsDeps,
  letters: readonly DeadItem[],
  redriver: Redriver,
  pace: Pace,
): Promise<Redriven> {
  const done: DeadItem[] = [];
  let untried = letters;
  for (const size of STEPS) {
    if (untried.length === 0 || deps.signal.aborted) break;
    const step = untried.slice(0, size);
    const sent = await sendStep(deps, step, redriver, pace, size === Number.POSITIVE_INFINITY);
    untried = untried.slice(sent.length);
    const outcome = await waitForStep(deps, sent, redriver, pace.waitMs, (open) =>
      deps.progress(`${done.length + sent.length - open} of ${letters.length} done`),
    );
    done.push(...outcome.done);
    if (outcome.back.length > 0 || outcome.waiting.length > 0) return { ...outcome, done, untried };
  }
  return { done, back: [], waiting: [], untried };
}

/** @returns what was sent: all of it, unless the user asked to stop */
async function sendStep(
  { clock, signal, progress }: StepsDeps,
  step: readonly DeadItem[],
  redriver: Redriver,
  { ratePerS }: Pace,
  isRest: boolean,
): Promise<readonly DeadItem[]> {
  if (isRest && (await redriver.moveRest?.(ratePerS))) return step;
  const startedAt = clock.now();
  const sent: DeadItem[] = [];
  for (const letter of step) {
    await clock.sleep(startedAt + (sent.length * 1_000) / ratePerS - clock.now(), signal);
    if (signal.aborted) break;
    await redriver.resend(letter);
    sent.push(letter);
    progress(`${sent.length} of ${step.length} of this step redriven`);
  }
  return sent;
}

/** Waits until every letter is done, or one is back, or none was done for `waitMs`. */
async function waitForStep(
  { clock, signal }: StepsDeps,
  sent: readonly DeadItem[],
  redriver: Redriver,
  waitMs: number,
  onProgress: (open: number) => void,
): Promise<Omit<Redriven, 'untried'>> {
  const done: DeadItem[] = [];
  let open = sent;
  for (let deadline = clock.now() + waitMs; ; ) {
    const fates = await eachOf(open, (letter) => redriver.look(letter));
    const back = open.flatMap((letter, i) => {
      const fate = fates[i];
      return fate?.state === 'back'
        ? [{ letter, fingerprint: fate.fingerprint, sameCause: fate.sameCause }]
        : [];
    });
    const doneNow = open.filter((_, i) => fates[i]?.state === 'done');
    done.push(...doneNow);
    open = open.filter((_, i) => fates[i]?.state === 'waiting');
    onProgress(open.length);
    if (doneNow.length > 0) deadline = clock.now() + waitMs;
    const over = open.length === 0 || back.length > 0 || clock.now() >= deadline || signal.aborted;
    if (over) return { done, back, waiting: open };
    await clock.sleep(LOOK_EVERY_MS, signal);
  }
}
