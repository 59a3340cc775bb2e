import { isMailroomError, MailroomError } from '../base/errors.ts';
import type { JsonOf } from '../base/json.ts';
import type { HandledEvent } from '../events/external-event.ts';
import type { EffectInProgress } from '../inbox/inbox-effect.ts';
import { effectSpan } from '../observe/message-spans.ts';
import type { Telemetry } from '../observe/telemetry.ts';
import { inSpan } from '../observe/tracer.ts';
import type { Commit } from '../outbox/outbox.ts';
import { Overtaken } from '../store/last-sequence.ts';
import type { ClaimedMessage } from './consumer-context.ts';
import type { LeasedContext } from './handler.ts';
import { afterStep, type HandlerState, type HandlerStep, NOT_STARTED } from './handler-state.ts';
import type { HandlerWork } from './inbox-port.ts';
import { runOnce } from './once.ts';
import { onceEach } from './once-each.ts';
import { TrackedPromise } from './tracked-promise.ts';

/** One run of a leased handler. */
export interface HandlerRun {
  readonly claimed: ClaimedMessage;
  readonly event: HandledEvent;
  /** Aborted when the handler must stop. */
  readonly signal: AbortSignal;
  /** All calls that the handler has made. */
  readonly calls: Promise<unknown>[];
  /** Those that have not ended, with the text that names each in an error. */
  readonly underWay: Map<TrackedPromise<unknown>, string>;
  /** The failures among these calls and any promises chained to them. */
  readonly failures: FailedCall[];
  /** Changed only by {@link take}. */
  state: HandlerState;
}

/** A failed call of a handler, or a failed promise that was chained to one. */
interface FailedCall {
  readonly what: string;
  readonly call: TrackedPromise<unknown>;
  readonly error: unknown;
  /** True if the call was under way when the handler returned, so that its listeners decided nothing. */
  readonly late: boolean;
}

const COMMIT = 'ctx.commit';

/** Starts a run of a leased handler. */
export function handlerRun(claimed: ClaimedMessage, event: HandledEvent, signal: AbortSignal): HandlerRun {
  return { claimed, event, signal, calls: [], underWay: new Map(), failures: [], state: NOT_STARTED };
}

/** Takes a step of a run. */
export function take(run: HandlerRun, step: HandlerStep): void {
  run.state = afterStep(run.state, step);
}

/** The failures that the handler has not seen: without them, it would not know that its work is incomplete. */
export function unseenFailures({ failures }: HandlerRun): FailedCall[] {
  return failures.filter(({ call, late }) => late || !call.handled);
}

/** Makes the context that a run passes to its handler. */
export function leasedContext(run: HandlerRun): LeasedContext {
  const { claim, clock, logFields, delivery } = run.claimed;
  const runs: LeasedContext['once'] = (name, effect) => once(run, name, effect);
  return {
    attempt: claim.attempt,
    signal: run.signal,
    body: delivery.body,
    logFields,
    remainingMs: () => Math.max(0, claim.endsBy - clock.now()),
    once: (name, effect) => listened(run, onceText(name), runs(name, effect)),
    onceEach: (name, items, effect, options) =>
      listened(
        run,
        `ctx.onceEach("${name}")`,
        onceEach(runs, effectNames(run), name, items, effect, options),
      ),
    commit: (wanted) => listened(run, COMMIT, commit(run, wanted)),
  };
}

/** The names of the effects that the message's row has: those that the claim read, and those that this run called. */
function effectNames({ claimed: { claim, effects } }: HandlerRun): string[] {
  return [...Object.keys(claim.effects), ...effects.asked];
}

function onceText(name: string): string {
  return `ctx.once("${name}")`;
}

/** Keeps the failure of an un-awaited call from ending the process, and records it so that it fails the message instead. */
function listened<T>(run: HandlerRun, what: string, promise: Promise<T>): Promise<T> {
  run.calls.push(promise);
  const tracked = new TrackedPromise(promise, (call, failure) => {
    const wasUnderWay = run.underWay.delete(call);
    if (failure === undefined) return;
    const { error } = failure;
    run.failures.push({ what, call, error, late: wasUnderWay && run.state.returned });
    if (run.state.ended && !call.handled) logUnhandled(run.claimed.telemetry, error);
  });
  run.underWay.set(tracked, what);
  return tracked;
}

async function once<T>(
  run: HandlerRun,
  name: string,
  effect: (idempotencyKey: string, signal: AbortSignal) => Promise<T>,
): Promise<JsonOf<T>> {
  refuseWhenEnded(run, onceText(name));
  // The event may be superseded: a handler that has caught the refusal of its commit may not start anything for it.
  if (run.state.blocked instanceof Overtaken) throw run.state.blocked;
  if (run.state.commit.kind !== 'none') throw afterCommit(run, onceText(name));
  if (run.state.notAwaited !== undefined) throw run.state.notAwaited;
  run.signal.throwIfAborted();
  let thrown: { readonly error: unknown } | undefined;
  const watched = async (idempotencyKey: string) => {
    take(run, { is: 'table-answered' });
    try {
      return await inSpan(run.claimed.tracer, effectSpan(name), () => effect(idempotencyKey, run.signal));
    } catch (error) {
      thrown = { error }; // the provider's failure, even if it looks like the table's
      throw error;
    } finally {
      take(run, { is: 'table-called' });
    }
  };
  take(run, { is: 'table-called' });
  try {
    return await runOnce(run.claimed, name, watched);
  } catch (error) {
    if (isMailroomError(error, 'EFFECT_IN_PROGRESS'))
      take(run, { is: 'blocked', error: error as EffectInProgress });
    else if (thrown?.error !== error && run.claimed.inbox.isOutage(error)) take(run, { is: 'outage', error });
    throw error;
  } finally {
    take(run, { is: 'table-answered' });
  }
}

async function commit(run: HandlerRun, wanted: Commit | HandlerWork): Promise<void> {
  const work = typeof wanted === 'function' ? wanted : async () => wanted;
  const { inbox, telemetry, claim } = run.claimed;
  refuseWhenEnded(run, COMMIT);
  if (run.state.commit.kind !== 'none') throw afterCommit(run, COMMIT);
  if (run.state.blocked !== undefined) throw run.state.blocked;
  run.signal.throwIfAborted();
  refuseBesideCalls(run);
  take(run, { is: 'commit-begun' }); // before the first await, so that of two concurrent calls only one passes
  let sent = false;
  const end = await inbox.commit(claim, work, run.event, () => {
    refuseBesideCalls(run); // a call that was made, or that failed, since the commit began
    sent = true;
    take(run, { is: 'table-called' });
  });
  if (sent) take(run, { is: 'table-answered' });
  if (end.status === 'committed') {
    take(run, { is: 'committed' });
    telemetry.count('EventsCommitted', end.events);
    return;
  }
  const { error } = end;
  if (end.isOutage) take(run, { is: 'outage', error });
  // The handler may commit something else only if nothing was written.
  take(run, end.wroteNothing ? { is: 'commit-refused' } : { is: 'commit-unknown', error });
  if (error instanceof Overtaken) take(run, { is: 'blocked', error });
  throw error;
}

/**
 * Refuses a commit while an effect is under way, after a failure that the handler has not seen, and after an earlier refusal.
 *
 * A commit sets the message PROCESSED, and no receive runs its handler again: an effect that failed or stopped beside it would never
 * happen. So every effect that the handler has started must have ended, and its failure must have reached the handler, before the
 * transaction is sent.
 */
function refuseBesideCalls(run: HandlerRun): void {
  if (run.state.notAwaited !== undefined) throw run.state.notAwaited;
  const effect = [...run.underWay.values()].find((what) => what !== COMMIT);
  if (effect !== undefined) throw notAwaited(run, `${effect} is not awaited`);
  const [failure] = unseenFailures(run);
  if (failure !== undefined)
    throw notAwaited(run, `${failure.what} has failed and was not awaited`, failure.error);
}

function notAwaited(run: HandlerRun, problem: string, cause?: unknown): MailroomError {
  const error = new MailroomError(
    'NOT_AWAITED',
    `ctx.commit is refused: ${problem}. Nothing was written, and the message fails. Await each ctx.once and ctx.onceEach before ctx.commit, and ctx.commit as the last call.`,
    { cause },
  );
  take(run, { is: 'not-awaited', error });
  return error;
}

function refuseWhenEnded({ state, claimed }: HandlerRun, what: string): void {
  if (!state.ended) return;
  const error = new MailroomError(
    'HANDLER_ENDED',
    `${what} after its handler had returned: the message is settled without this call. Await everything that the handler starts.`,
  );
  claimed.telemetry.log.error(error.message, { error });
  throw error;
}

/** Logs the failure of an un-awaited call that can no longer fail the message. A call that was too late was logged when it was made. */
export function logUnhandled(telemetry: Telemetry, error: unknown): void {
  if (isMailroomError(error, 'HANDLER_ENDED') || isMailroomError(error, 'AFTER_COMMIT')) return;
  telemetry.log.error('A call that a handler did not await has failed', { error: error as Error });
}

/** A commit that is not yet sent is refused then: it would settle the message without this call. */
function afterCommit(run: HandlerRun, what: string): MailroomError {
  notAwaited(run, `${what} was called before it had ended`);
  const error = new MailroomError(
    'AFTER_COMMIT',
    `${what} after ctx.commit: a handler commits its message once, as its last call. Put everything into one commit.`,
  );
  run.claimed.telemetry.log.error(error.message, { error });
  return error;
}
