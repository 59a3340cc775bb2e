import type { Clock } from '../../../lambdas/runtime/base/clock.ts';
import { errorCode, errorMessage } from '../../../lambdas/runtime/base/errors.ts';
import type { Queues } from '../../../lambdas/runtime/operations/queues.ts';
import type { SweepRange, SweepRangeReport } from '../../../lambdas/runtime/relay/sweep-range.ts';
import { isEventId } from '../../../lambdas/runtime/store/event-id.ts';
import type { Note } from '../../../lambdas/runtime/store/operation-record.ts';
import { isUnreadable, readable } from '../../../lambdas/runtime/store/stored-rows.ts';
import { eachOf } from '../../deployment/rows-reader.ts';
import type { StoredRows } from '../../deployment/stored-rows.ts';
import type { DeadLetter, DeadLetterSource } from '../../reports/dead-letters/dead-letters.ts';
import { streamRange } from '../../reports/dead-letters/redrive-plan.ts';
import {
  isHandled,
  type MessageStanding,
  readStanding,
  supersededBy,
  unsentReplacement,
} from '../../reports/dead-letters/standing.ts';
import type { Terminal } from '../../terminal/terminal.ts';
import { type OutboxChangesDeps, outboxChangesOf } from '../outbox-changes.ts';

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
      ...(await redriver.look(deadLetter).catch(() => WAITING)),
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

/** Dependencies of the redrivers. */
export interface RedriverDeps extends OutboxChangesDeps {
  readonly stored: StoredRows;
  readonly queues: Queues;
  readonly sweep: (range: SweepRange) => Promise<SweepRangeReport>;
}

const DONE: RedriveProgress = { state: 'done' };
const HANDLED: RedriveProgress = { state: 'handled' };
const WAITING: RedriveProgress = { state: 'waiting' };
const SUPERSEDED: RedriveProgress = { state: 'superseded' };
const NOT_SWEPT: RedriveProgress = {
  state: 'back',
  fingerprint: 'The sweep could not read all of its minutes, or the bus refused the events',
  sameCause: false,
};

/** The redriver of a dead-letter source. @param note - stored with the events that are requeued */
export function redriverOf(deps: RedriverDeps, source: DeadLetterSource, note: Note): Redriver {
  if (source.kind === 'dead') return deadRedriver(deps, note);
  if (source.kind === 'stream') return streamRedriver(deps, source);
  return queueRedriver(deps, source, note);
}

/**
 * Sends each message to the consumer's queue, then deletes its dead letter. A crash in between leaves a duplicate, which the inbox
 * absorbs; the other order would lose the message. The dead letter stays if a resend has replaced its event meanwhile: the inbox
 * absorbs the message, and the new event may not have been sent.
 *
 * The dead letter of an ordered message is deleted only once a look shows how its message has ended. The invariant: a
 * message that is absorbed without a run has a dead letter, until an operator discards it.
 *
 *     plan: runs       send       gate of the consumer       look
 *                 └ its number may be passed over here ┘      └ superseded: the dead letter stays
 */
export function queueRedriver(
  deps: Pick<RedriverDeps, 'table' | 'stored' | 'clock' | 'queues' | 'postgres'>,
  { url, consumer }: Extract<DeadLetterSource, { kind: 'rule' | 'consumer' }>,
  note: Note,
): Redriver {
  const { stored, queues } = deps;
  const standingOf = (deadLetter: DeadLetter) => readStanding(stored, consumer.name, deadLetter);
  return {
    resend: async (deadLetter) => {
      const { eventId, row, received, isOrdered = false } = deadLetter;
      if (received === undefined) return;
      // Settled since the plan, under the id of its body: a function that runs already does not know.
      if ((await standingOf(deadLetter)).isSettledUnread) return queues.remove(url, received);
      // Otherwise the audit would report the event as missing while its new message waits behind others.
      if (row === undefined && isEventId(eventId)) await outboxChangesOf(deps).markResent(eventId, note);
      await queues.send(consumer.queue, received.body);
      if (isOrdered || unsentReplacement(await standingOf(deadLetter)) !== undefined) return;
      await queues.remove(url, received);
    },
    look: async (deadLetter) => {
      const { row, received, isOrdered = false } = deadLetter;
      const progress = progressOf(row, await standingOf(deadLetter));
      const hasEnded = progress.state !== 'waiting' && progress.state !== 'superseded';
      if (isOrdered && hasEnded && received !== undefined) await queues.remove(url, received);
      return progress;
    },
  };
}

/** Compares the standing of a redriven message with the row before. */
function progressOf(before: DeadLetter['row'], standing: MessageStanding): RedriveProgress {
  const { row: now } = standing;
  if (standing.isSettledUnread) return HANDLED;
  if (now === undefined || isUnreadable(now)) return WAITING;
  if (supersededBy(standing) !== undefined) return SUPERSEDED;
  if (isHandled(standing)) return now.status === 'PROCESSED' && now.resolvedBy === undefined ? DONE : HANDLED;
  const known = readable(before);
  if (now.fence === known?.fence) return WAITING; // every claim and rejection has its own fence
  const sameCause = now.fingerprint !== undefined && now.fingerprint === known?.fingerprint;
  // An attempt that had to wait, such as for an effect of the last one, is not counted and keeps the fingerprint of the rejection.
  const failedAgain = now.status === 'REJECTED' || (now.status === 'FAILED' && sameCause && now.attempts > 0);
  return failedAgain ? { state: 'back', fingerprint: now.fingerprint ?? 'unknown', sameCause } : WAITING;
}

/** Makes DEAD events PENDING again; the next sweep publishes them. */
function deadRedriver(deps: RedriverDeps, note: Note): Redriver {
  return {
    resend: async ({ id }) => {
      await outboxChangesOf(deps).requeue(id, note);
    },
    look: async (deadLetter) => {
      const row = await deps.stored.outbox.byId(deadLetter.id, true);
      if (row === undefined) return HANDLED;
      if (isUnreadable(row)) return WAITING;
      const { status, fingerprint = 'unknown' } = row;
      if (status === 'PENDING') return WAITING;
      if (status !== 'DEAD') return status === 'PUBLISHED' ? DONE : HANDLED;
      return { state: 'back', fingerprint, sameCause: fingerprint === deadLetter.fingerprint };
    },
  };
}

/** Sweeps the minutes of a batch that the stream mapping discarded, then deletes the dead letter. */
function streamRedriver(
  { queues, sweep }: RedriverDeps,
  { url }: Extract<DeadLetterSource, { kind: 'stream' }>,
): Redriver {
  const swept = new Map<DeadLetter, RedriveProgress>();
  return {
    resend: async (deadLetter) => {
      const range = streamRange(deadLetter);
      if (range === undefined || deadLetter.received === undefined) return;
      const { complete } = await sweep(range);
      if (complete) await queues.remove(url, deadLetter.received);
      swept.set(deadLetter, complete ? DONE : NOT_SWEPT);
    },
    look: async (deadLetter) => swept.get(deadLetter) ?? WAITING,
  };
}
