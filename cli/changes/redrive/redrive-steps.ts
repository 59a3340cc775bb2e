import type { Clock } from '../../../lambdas/runtime/base/clock.ts';
import { errorCode, errorMessage } from '../../../lambdas/runtime/base/errors.ts';
import { eachOf } from '../../deployment/rows-reader.ts';
import type { DeadLetter } from '../../reports/dead-letters/dead-letters.ts';
import type { Terminal } from '../../terminal/terminal.ts';

/** The dead letters of each step; the last step has the rest. */
const STEPS = [1, 10, Number.POSITIVE_INFINITY] as const;

/** The interval at which the progress of a step is checked. */
const LOOK_EVERY_MS = 1_000;

/**
 * The progress of a redriven dead letter; `handled`: an operator, or an event in its place, has ended it meanwhile; `superseded`: it was absorbed
 * without a run; `back`: it failed again.
 */
export type RedriveProgress =
  | { readonly state: 'done' | 'handled' | 'waiting' | 'superseded' }
  | ({ readonly state: 'back' } & FailedAgain);

/** The failure of a redriven dead letter. */
interface FailedAgain {
  readonly fingerprint: string;
  readonly sameCause: boolean;
  /** It ended before it ran: an operator discarded or replaced it, or a later event superseded it. @default false */
  readonly neverRan?: boolean | undefined;
}

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

/** A dead letter that could not be sent, and the error as text. */
interface FailedSend {
  readonly deadLetter: DeadLetter;
  readonly code: string;
  readonly message: string;
}

/** The dead letters of a redrive by outcome. */
export interface Redriven {
  readonly done: readonly DeadLetter[];
  /** Ended meanwhile, though not by a run of its handler: their dead letters are deleted. */
  readonly handled: readonly DeadLetter[];
  /** Absorbed without a run, because a number from their own on was applied or passed over meanwhile: they stay in the source. */
  readonly superseded: readonly DeadLetter[];
  /** Failed again: the redrive stopped there. */
  readonly back: readonly (FailedAgain & { readonly deadLetter: DeadLetter })[];
  /** Its send failed: the redrive stopped there. It stays in the source, and may also be in the queue. @default none */
  readonly failed?: FailedSend | undefined;
  /** Redriven, but not done in time: the redrive stopped there. */
  readonly waiting: readonly DeadLetter[];
  /** Not redriven: they stay in the source. */
  readonly untried: readonly DeadLetter[];
}

/** Dependencies of {@link redriveInSteps}. */
export interface StepsDeps {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly progress: Terminal['progress'];
}

/**
 * Redrives dead letters in three steps: 1, then 10, then the rest. After each it waits until the whole step is done. It stops if
 * one fails again or nothing is done in time: a cause that persists costs one dead letter, not all. It stops, too, at a dead letter that
 * cannot be sent, and reports what happened to those before.
 *
 * @throws the error of the first send: nothing was redriven
 */
export async function redriveInSteps(
  deps: StepsDeps,
  deadLetters: readonly DeadLetter[],
  redriver: Redriver,
  pace: Pace,
): Promise<Redriven> {
  const done: DeadLetter[] = [];
  const handled: DeadLetter[] = [];
  const superseded: DeadLetter[] = [];
  let untried = deadLetters;
  let step = 0;
  for (const size of STEPS) {
    if (untried.length === 0 || deps.signal.aborted) break;
    step += 1;
    const reached = { step, steps: stepsOf(deadLetters.length) };
    const next = { reached, deadLetters: untried.slice(0, size) };
    const { sent, failed } = await sendStep(deps, next, redriver, pace);
    if (failed !== undefined && failed.deadLetter === deadLetters[0]) throw failed.error;
    untried = untried.slice(sent.length + (failed === undefined ? 0 : 1));
    const outcome = await waitForStep(deps, sent, redriver, pace.waitMs, (open) => {
      const over = done.length + handled.length + superseded.length + sent.length - open;
      deps.progress(`Done: ${over} of ${deadLetters.length}`, { done: over, of: deadLetters.length });
    });
    done.push(...outcome.done);
    handled.push(...outcome.handled);
    superseded.push(...outcome.superseded);
    if (outcome.back.length + outcome.waiting.length > 0 || failed !== undefined)
      return { ...outcome, done, handled, superseded, failed, untried };
  }
  return { done, handled, superseded, back: [], waiting: [], untried };
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

/** The dead letters of a step. */
interface SentStep {
  readonly reached: { readonly step: number; readonly steps: number };
  readonly deadLetters: readonly DeadLetter[];
}

/** @returns the dead letters sent: all of the step, unless the user stopped it or one `failed` */
async function sendStep(
  { clock, signal, progress }: StepsDeps,
  { reached, deadLetters }: SentStep,
  redriver: Redriver,
  { ratePerS }: Pace,
): Promise<{
  readonly sent: readonly DeadLetter[];
  readonly failed?: FailedSend & { readonly error: unknown };
}> {
  const startedAt = clock.now();
  const { step, steps } = reached;
  const sent: DeadLetter[] = [];
  for (const deadLetter of deadLetters) {
    await clock.sleep(startedAt + (sent.length * 1_000) / ratePerS - clock.now(), signal);
    if (signal.aborted) break;
    try {
      await redriver.resend(deadLetter);
    } catch (error) {
      return { sent, failed: { deadLetter, error, code: errorCode(error), message: errorMessage(error) } };
    }
    sent.push(deadLetter);
    progress(`Step ${step} of ${steps}: ${sent.length} of ${deadLetters.length} redriven`, reached);
  }
  return { sent };
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
  const handled: DeadLetter[] = [];
  const superseded: DeadLetter[] = [];
  let open = sent;
  for (let deadline = clock.now() + waitMs; ; ) {
    const looks = await eachOf(open, async (deadLetter) => ({
      deadLetter,
      // It was redriven: a look that fails is repeated.
      ...(await redriver.look(deadLetter).catch((): RedriveProgress => ({ state: 'waiting' }))),
    }));
    const back = looks.flatMap((look) => (look.state === 'back' ? [look] : []));
    const inState = (wanted: RedriveProgress['state']) =>
      looks.filter(({ state }) => state === wanted).map(({ deadLetter }) => deadLetter);
    done.push(...inState('done'));
    handled.push(...inState('handled'));
    superseded.push(...inState('superseded'));
    open = inState('waiting');
    onProgress(open.length);
    if (open.length + back.length < looks.length) deadline = clock.now() + waitMs;
    const over = open.length === 0 || back.length > 0 || clock.now() >= deadline || signal.aborted;
    if (over) return { done, handled, superseded, back, waiting: open };
    await clock.sleep(LOOK_EVERY_MS, signal);
  }
}
