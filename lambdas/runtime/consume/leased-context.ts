import { isMailroomError, MailroomError } from '../base/errors.ts';
import type { HandledEvent } from '../events/handled-event.ts';
import type { JsonOf } from '../events/json-of.ts';
import type { Claim } from '../inbox/inbox.ts';
import { commitMessage } from '../inbox/inbox-completion.ts';
import type { EffectInProgress } from '../inbox/inbox-effect.ts';
import { effectSpan } from '../observe/message-spans.ts';
import type { Telemetry } from '../observe/telemetry.ts';
import { inSpan } from '../observe/tracer.ts';
import type { Commit } from '../outbox/outbox.ts';
import { checkTransaction, eventCount } from '../outbox/transaction-checks.ts';
import type { TransactAction } from '../store/table.ts';
import type { Received } from './consumer-context.ts';
import type { LeasedContext } from './handler.ts';
import { type Effects, runOnce } from './once.ts';
import { isOutage, isOutageOf } from './outage.ts';
import { TrackedPromise } from './tracked-promise.ts';

/** One run of a leased handler, with the state that decides the outcome of its message. */
export interface HandlerRun {
  readonly ctx: Received;
  readonly event: HandledEvent;
  readonly claim: Claim;
  readonly effects: Effects;
  /** Aborted when the handler must stop. */
  readonly signal: AbortSignal;
  /** `unknown`: a commit whose response was lost, and which may still take effect. */
  commit:
    | { readonly kind: 'none' | 'running' | 'done' }
    | { readonly kind: 'unknown'; readonly error: unknown };
  blocked: EffectInProgress | undefined;
  /** The last call that failed because the table was unreachable: no attempt is counted then. */
  outage: { readonly error: unknown } | undefined;
  /** The number of table calls that the handler is waiting for. */
  waiting: number;
  /** All calls that the handler has made. */
  readonly calls: Promise<unknown>[];
  /** The failures among these calls and any promises chained to them. */
  readonly failures: { readonly call: TrackedPromise<unknown>; readonly error: unknown }[];
  /** Set when the function's time ran out before the handler ended. `lostTimeToTable`: slow table calls used up its time. */
  cutOff: { readonly lostTimeToTable: boolean } | undefined;
  /** True once the handler has ended: un-awaited code may not start anything more. */
  ended: boolean;
}

/** Starts a run of a leased handler. */
export function handlerRun(effects: Effects, event: HandledEvent, signal: AbortSignal): HandlerRun {
  const { ctx, claim } = effects;
  return {
    ctx,
    event,
    claim,
    effects,
    signal,
    commit: { kind: 'none' },
    blocked: undefined,
    outage: undefined,
    waiting: 0,
    calls: [],
    failures: [],
    cutOff: undefined,
    ended: false,
  };
}

/** Makes the context that a run passes to its handler. */
export function leasedContext(run: HandlerRun): LeasedContext {
  const { ctx, claim, signal } = run;
  return {
    attempt: claim.attempt,
    signal,
    logFields: ctx.logFields,
    remainingMs: () => Math.max(0, claim.endsBy - ctx.clock.now()),
    once: (name, effect) => listened(run, once(run, name, effect)),
    commit: (wanted) => listened(run, commit(run, wanted)),
  };
}

/** Keeps the failure of an un-awaited call from ending the process, and records it so that it fails the message instead. */
function listened<T>(run: HandlerRun, promise: Promise<T>): Promise<T> {
  run.calls.push(promise);
  return new TrackedPromise(promise, (call, error) => {
    run.failures.push({ call, error });
    const logged = isMailroomError(error, 'HANDLER_ENDED');
    if (run.ended && !call.handled && !logged) logUnhandled(run.ctx.telemetry, error);
  });
}

async function once<T>(
  run: HandlerRun,
  name: string,
  effect: (idempotencyKey: string, signal: AbortSignal) => Promise<T>,
): Promise<JsonOf<T>> {
  refuseWhenEnded(run, `ctx.once("${name}")`);
  if (run.commit.kind !== 'none') throw afterCommit(`ctx.once("${name}")`);
  run.signal.throwIfAborted();
  let thrown: { readonly error: unknown } | undefined;
  const watched = async (idempotencyKey: string) => {
    run.waiting -= 1;
    try {
      return await inSpan(run.ctx.tracer, effectSpan(name), () => effect(idempotencyKey, run.signal));
    } catch (error) {
      thrown = { error }; // the provider's failure, even if it looks like the table's
      throw error;
    } finally {
      run.waiting += 1;
    }
  };
  run.waiting += 1;
  try {
    return await runOnce(run.effects, name, watched);
  } catch (error) {
    if (isMailroomError(error, 'EFFECT_IN_PROGRESS')) run.blocked = error as EffectInProgress;
    else if (thrown?.error !== error && isOutage(error)) run.outage = { error };
    throw error;
  } finally {
    run.waiting -= 1;
  }
}

async function commit(run: HandlerRun, { writes = [], events = [] }: Commit): Promise<void> {
  const { outbox, table, clock, inbox, config, telemetry } = run.ctx;
  refuseWhenEnded(run, 'ctx.commit');
  if (run.commit.kind !== 'none') throw afterCommit('ctx.commit');
  if (run.blocked !== undefined) throw run.blocked;
  run.signal.throwIfAborted();
  run.commit = { kind: 'running' }; // before the first await, so that of two concurrent calls only one passes
  let sent = false;
  let actions: TransactAction[] = [];
  try {
    actions = [...writes, ...(await outbox.entries(events, run.event))];
    checkTransaction(actions, { table, clock, ownActions: 1 });
    sent = true;
    run.waiting += 1;
    await commitMessage(inbox, run.claim, actions);
    run.commit = { kind: 'done' };
    telemetry.count('EventsCommitted', eventCount(actions));
  } catch (error) {
    // Only a refusal proves that nothing was written, so only then may the handler commit something else.
    const refused =
      !sent || isMailroomError(error, 'TRANSACTION_CANCELLED') || isMailroomError(error, 'FENCE_LOST');
    run.commit = refused ? { kind: 'none' } : { kind: 'unknown', error };
    if (sent && isOutageOf(actions, config.tableName, error)) run.outage = { error };
    throw error;
  } finally {
    if (sent) run.waiting -= 1;
  }
}

function refuseWhenEnded({ ended, ctx }: HandlerRun, what: string): void {
  if (!ended) return;
  const error = new MailroomError(
    'HANDLER_ENDED',
    `${what} after its handler had returned: the message is settled without this call. Await everything that the handler starts.`,
  );
  ctx.telemetry.log.error(error.message);
  throw error;
}

/** Logs the failure of an un-awaited call that can no longer fail the message. */
export function logUnhandled(telemetry: Telemetry, error: unknown): void {
  telemetry.log.error('A call that a handler did not await has failed', { error: error as Error });
}

function afterCommit(what: string): MailroomError {
  return new MailroomError(
    'AFTER_COMMIT',
    `${what} after ctx.commit: a handler commits its message once, as its last call. Put everything into one commit.`,
  );
}
