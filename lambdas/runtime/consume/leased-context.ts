import { isMailroomError, MailroomError } from '../base/errors.ts';
import type { JsonOf } from '../base/json.ts';
import type { HandledEvent } from '../events/external-event.ts';
import type { EffectInProgress } from '../inbox/inbox-effect.ts';
import { effectSpan } from '../observe/message-spans.ts';
import { inSpan } from '../observe/tracer.ts';
import type { Commit } from '../store/dynamo/outbox.ts';
import { Overtaken } from '../store/last-sequence.ts';
import type { ClaimedMessage } from './consumer-context.ts';
import type { LeasedContext } from './handler.ts';
import { type HandlerCalls, listened, unseenFailures } from './handler-calls.ts';
import type { HandlerWork } from './inbox-port.ts';
import { runOnce } from './once.ts';
import { onceEach } from './once-each.ts';

/** The reason for which a message waits, whatever its handler does. */
export type Blocked = EffectInProgress | Overtaken;

/** The state of one run of a leased handler, as far as it decides the outcome of its message. */
export interface HandlerState {
  readonly commit: CommitState;
  /** An effect may still be running elsewhere, or another event of the aggregate was applied: the message waits. */
  readonly blocked: Blocked | undefined;
  /**
   * A commit was refused because of a call that its handler did not await. From then on the run may neither start nor commit anything, and
   * the message fails, whatever its handler makes of the refusal: that call may be work that is not done.
   */
  readonly notAwaited: MailroomError | undefined;
  /** The last call that failed because the table was unreachable: no attempt is counted then. */
  readonly outage: { readonly error: unknown } | undefined;
  /** The number of table calls that the handler is waiting for. */
  readonly waiting: number;
  /** Set when the function's time ran out before the handler ended. `lostTimeToTable`: slow table calls used up its time. */
  readonly cutOff: { readonly lostTimeToTable: boolean } | undefined;
  /** True once the handler's function has returned or thrown; calls that it did not await may still be under way. */
  readonly returned: boolean;
  /** True once the handler has ended: un-awaited code may not start anything more. */
  readonly ended: boolean;
}

/** `unknown`: a commit whose response was lost, and which may still take effect. */
type CommitState =
  | { readonly kind: 'none' | 'running' | 'done' }
  | { readonly kind: 'unknown'; readonly error: unknown };

/** A change of a run's state. */
export type HandlerStep =
  /** A call was sent to the table, or the table has answered one: also with an error. */
  | { readonly is: 'table-called' | 'table-answered' }
  /** A commit has begun, was certainly not written, or was written. */
  | { readonly is: 'commit-begun' | 'commit-refused' | 'committed' }
  | { readonly is: 'commit-unknown'; readonly error: unknown }
  | { readonly is: 'blocked'; readonly error: Blocked }
  | { readonly is: 'not-awaited'; readonly error: MailroomError }
  | { readonly is: 'outage'; readonly error: unknown }
  | { readonly is: 'cut-off'; readonly lostTimeToTable: boolean }
  | { readonly is: 'returned' | 'ended' };

/** One run of a leased handler. */
export interface HandlerRun extends HandlerCalls {
  readonly claimed: ClaimedMessage;
  readonly event: HandledEvent;
  /** Aborted when the handler must stop. */
  readonly signal: AbortSignal;
  /** Changed only by {@link take}. */
  state: HandlerState;
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

/** The state of a run whose handler has done nothing yet. */
export const NOT_STARTED: HandlerState = {
  commit: { kind: 'none' },
  blocked: undefined,
  notAwaited: undefined,
  outage: undefined,
  waiting: 0,
  cutOff: undefined,
  returned: false,
  ended: false,
};

/** Returns the state after a step. */
export function afterStep(state: HandlerState, step: HandlerStep): HandlerState {
  switch (step.is) {
    case 'table-called':
      return { ...state, waiting: state.waiting + 1 };
    case 'table-answered':
      return { ...state, waiting: state.waiting - 1 };
    case 'commit-begun':
      return { ...state, commit: { kind: 'running' } };
    case 'commit-refused':
      return { ...state, commit: { kind: 'none' } };
    case 'committed':
      return { ...state, commit: { kind: 'done' } };
    case 'commit-unknown':
      return { ...state, commit: { kind: 'unknown', error: step.error } };
    case 'blocked':
      return { ...state, blocked: step.error };
    case 'not-awaited':
      return { ...state, notAwaited: step.error };
    case 'outage':
      return { ...state, outage: { error: step.error } };
    case 'cut-off':
      return { ...state, cutOff: { lostTimeToTable: step.lostTimeToTable } };
    case 'returned':
      return { ...state, returned: true };
    case 'ended':
      return { ...state, ended: true };
  }
}

/** Makes the context that a run passes to its handler. */
export function leasedContext(run: HandlerRun): LeasedContext {
  const { claim, clock, logFields, delivery } = run.claimed;
  const commits = (wanted: Commit | HandlerWork) => commit(run, wanted);
  const runs: LeasedContext['once'] = (name, effect) => once(run, name, effect);
  const runsEach: LeasedContext['onceEach'] = (...call) => onceEach(runs, effectNames(run), ...call);
  return {
    attempt: claim.attempt,
    signal: run.signal,
    body: delivery.body,
    logFields,
    remainingMs: () => Math.max(0, claim.endsBy - clock.now()),
    once: (name, effect) => listened(run, onceText(name), runs(name, effect)),
    onceEach: (name, ...rest) => listened(run, `ctx.onceEach("${name}")`, runsEach(name, ...rest)),
    commit: (wanted) => listened(run, COMMIT, commits(wanted)),
  };
}

/** The names of the effects that the message's row has: those that the claim read, and those that this run called. */
function effectNames({ claimed: { effects } }: HandlerRun): string[] {
  return [...effects.before.keys(), ...effects.asked];
}

function onceText(name: string): string {
  return `ctx.once("${name}")`;
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
