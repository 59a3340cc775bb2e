import { isMailroomError, MailroomError } from '../errors.ts';
import type { Envelope } from '../event.ts';
import type { Claim } from '../store/inbox.ts';
import { commitMessage } from '../store/inbox-completion.ts';
import type { EffectInProgress } from '../store/inbox-effect.ts';
import type { TransactAction } from '../store/table.ts';
import type { Telemetry } from '../telemetry.ts';
import type { Commit } from '../write/outbox.ts';
import { checkTransaction, eventCount } from '../write/transaction-checks.ts';
import type { ConsumerContext } from './consumer-context.ts';
import type { LeasedContext } from './handler.ts';
import type { JsonOf } from './json-of.ts';
import { Listened } from './listened.ts';
import { type Effects, runOnce } from './once.ts';
import { isOutage, isOutageOf } from './outage.ts';

/** One run of a leased handler, with what it has done so far that decides about its message. */
export interface HandlerRun {
  readonly ctx: ConsumerContext;
  readonly event: Envelope;
  readonly claim: Claim;
  readonly effects: Effects;
  /** Aborted when the handler must stop. */
  readonly signal: AbortSignal;
  /** `unknown`: a commit whose answer was lost, and which may still happen. */
  commit:
    | { readonly kind: 'none' | 'running' | 'done' }
    | { readonly kind: 'unknown'; readonly error: unknown };
  blocked: EffectInProgress | undefined;
  /** The last call that failed because the table could not be reached: no attempt counts then. */
  outage: { readonly error: unknown } | undefined;
  /** How many calls to the table the handler waits for. */
  waiting: number;
  /** Every call that the handler has made. */
  readonly calls: Promise<unknown>[];
  /** What failed of these calls, and of what it chained to them. */
  readonly failures: { readonly call: Listened<unknown>; readonly error: unknown }[];
  /** Set when the function's time was up before the handler was over. `robbed`: the table took its time. */
  cutOff: { readonly robbed: boolean } | undefined;
  /** Whether the handler is over: what it left behind may begin nothing more. */
  ended: boolean;
}

/** Begins a run of a leased handler. */
export function handlerRun(effects: Effects, event: Envelope, signal: AbortSignal): HandlerRun {
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

/** What the handler of a run is given. */
export function leasedContext(run: HandlerRun): LeasedContext {
  const { ctx, claim, signal } = run;
  return {
    attempt: claim.attempt,
    signal,
    remainingMs: () => Math.max(0, claim.endsBy - ctx.clock.now()),
    once: (name, effect) => listened(run, once(run, name, effect)),
    commit: (wanted) => listened(run, commit(run, wanted)),
  };
}

/** A call that the handler does not await ends no process when it fails; the failure is kept, and fails the message instead. */
function listened<T>(run: HandlerRun, promise: Promise<T>): Promise<T> {
  run.calls.push(promise);
  return new Listened(promise, (call, error) => {
    run.failures.push({ call, error });
    const logged = isMailroomError(error, 'HANDLER_ENDED');
    if (run.ended && !call.heard && !logged) logUnheard(run.ctx.telemetry, run.event, error);
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
      return await effect(idempotencyKey, run.signal);
    } catch (error) {
      thrown = { error }; // the provider's failure, however much it looks like one of the table
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
  const { outbox, clock, inbox, config, telemetry } = run.ctx;
  refuseWhenEnded(run, 'ctx.commit');
  if (run.commit.kind !== 'none') throw afterCommit('ctx.commit');
  if (run.blocked !== undefined) throw run.blocked;
  run.signal.throwIfAborted();
  run.commit = { kind: 'running' }; // before the first await: two at once must not both pass
  let sent = false;
  let actions: TransactAction[] = [];
  try {
    actions = [...writes, ...(await outbox.entries(events, run.event))];
    checkTransaction(actions, clock.now(), 1);
    sent = true;
    run.waiting += 1;
    await commitMessage(inbox, run.claim, actions);
    run.commit = { kind: 'done' };
    telemetry.count('EventsCommitted', eventCount(actions));
  } catch (error) {
    // Only a refusal says that nothing was written, and so lets the handler commit something else.
    const refused =
      !sent || isMailroomError(error, 'TRANSACTION_CANCELLED') || isMailroomError(error, 'FENCE_LOST');
    run.commit = refused ? { kind: 'none' } : { kind: 'unknown', error };
    if (sent && isOutageOf(actions, config.tableName, error)) run.outage = { error };
    throw error;
  } finally {
    if (sent) run.waiting -= 1;
  }
}

function refuseWhenEnded({ ended, ctx, event }: HandlerRun, what: string): void {
  if (!ended) return;
  const error = new MailroomError(
    'HANDLER_ENDED',
    `${what} after its handler had returned: the message is settled without it. Await everything that the handler begins.`,
  );
  ctx.telemetry.log.error(error.message, { eventId: event.eventId });
  throw error;
}

/** Says in the log what failed while nobody awaited it, where that cannot fail the message. */
export function logUnheard(telemetry: Telemetry, { eventId }: Envelope, error: unknown): void {
  telemetry.log.error('What a handler began and did not await has failed', {
    eventId,
    error: error as Error,
  });
}

function afterCommit(what: string): MailroomError {
  return new MailroomError(
    'AFTER_COMMIT',
    `${what} after ctx.commit: a message is committed once, and that is the last thing its handler does. Put everything into one commit.`,
  );
}
