import type { Clock } from './clock.ts';
import type { ConsumerConfig } from './config.ts';
import type { EffectInProgress } from './effect-persistence.ts';
import { isErrorWithCode, isTransactionCancelled, MailroomError } from './errors.ts';
import type { Envelope } from './event.ts';
import type { LeasedContext, LeasedHandler } from './handler.ts';
import type { Inbox } from './inbox.ts';
import type { Claim } from './inbox-conditions.ts';
import type { Effects } from './once.ts';
import { type Commit, checkTransaction, eventCount, type Outbox } from './outbox.ts';
import type { Queue } from './queue.ts';
import type { Telemetry } from './telemetry.ts';

/** What running a leased handler needs. */
export interface LeasedRunDeps {
  readonly config: ConsumerConfig;
  readonly queue: Queue;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly inbox: Inbox;
  readonly outbox: Outbox;
}

/** How a leased handler ended. */
export type LeasedRun =
  | { readonly kind: 'committed' }
  | { readonly kind: 'returned'; readonly result: unknown }
  | { readonly kind: 'threw'; readonly error: unknown }
  /** An effect may still be running elsewhere: whatever the handler made of it, the message waits. */
  | { readonly kind: 'blocked'; readonly error: EffectInProgress }
  /** The function's time is up, and the handler still runs. */
  | { readonly kind: 'out-of-time' };

/** The batch's response must be out this long before the function is stopped. */
export const RESPONSE_MARGIN_MS = 1_000;

/**
 * Runs one leased handler under its claim, to the end of everything that it began: a commit or an effect that it
 * did not await is awaited here. While it runs, one heartbeat extends both the inbox lease and the SQS visibility
 * timeout, a third of the shorter one apart, and never past the end of the function.
 *
 * When the function's time is nearly up, the handler's signal is aborted, and the batch is answered without it; but
 * not while an effect is running: an answered function is frozen and thawed, and the effect would go on later,
 * when its message is somebody else's. It is stopped with its function instead.
 *
 * @param claim - the claim under which it runs
 * @param effects - the side effects of that claim
 * @param receiptHandle - of the message as it was received
 */
export async function runLeased(
  deps: LeasedRunDeps,
  handler: LeasedHandler,
  event: Envelope,
  claim: Claim,
  effects: Effects,
  receiptHandle: string,
): Promise<LeasedRun> {
  const { config, clock, telemetry, inbox, queue } = deps;
  const over = new AbortController();
  const stop = new AbortController();
  const { ctx, state } = createContext(deps, event, claim, effects, stop.signal);

  const heartbeat = beat();
  const work = run();
  const timeIsUp = clock
    .sleep(claim.endsBy - RESPONSE_MARGIN_MS - clock.now(), over.signal)
    .then(async (): Promise<LeasedRun> => {
      if (over.signal.aborted) return { kind: 'out-of-time' };
      stop.abort(new MailroomError('OUT_OF_TIME', "The function's time is up"));
      await effects.idle();
      return { kind: 'out-of-time' };
    });
  const end = await Promise.race([work, timeIsUp]);
  over.abort();
  state.ended = true;
  if (end.kind !== 'out-of-time') await state.committing; // one that began in the very last moment
  // Not for long: a heartbeat that hangs must not use up the time in which the message is completed.
  await Promise.race([heartbeat, clock.sleep(Math.min(1_000, (claim.endsBy - clock.now()) / 4))]);

  if (state.commit.kind === 'done') {
    if (end.kind === 'threw') logThrow(end.error);
    return { kind: 'committed' };
  }
  if (state.blocked !== undefined) return { kind: 'blocked', error: state.blocked };
  // A commit of which nobody knows how it ended: whatever the handler says, the message must not be settled without
  // its writes. It is released, which the row refuses if the commit happened, and tried again if it did not.
  if (state.commit.kind === 'unknown' && end.kind !== 'out-of-time') {
    return { kind: 'threw', error: state.commit.error };
  }
  return end;

  async function run(): Promise<LeasedRun> {
    const result = await settle(() => handler.handle(event as never, ctx));
    // An effect that was not awaited may begin a commit when it ends, and so on: until nothing more begins.
    for (let seen: unknown; seen !== state.committing || effects.running(); ) {
      seen = state.committing;
      await Promise.all([effects.idle(), seen]);
      await clock.sleep(0);
    }
    return result;
  }

  async function beat(): Promise<void> {
    const everyMs = Math.min(config.leaseMs, config.visibilityTimeoutMs || config.leaseMs) / 3;
    for (;;) {
      await clock.sleep(everyMs, over.signal);
      if (over.signal.aborted || state.commit.kind === 'done') return;
      try {
        await inbox.renew(claim);
        const hiddenMs = Math.min(config.visibilityTimeoutMs, claim.endsBy + 1_000 - clock.now());
        await queue.changeVisibility(receiptHandle, Math.max(1, Math.ceil(hiddenMs / 1_000)));
      } catch (error) {
        if (isErrorWithCode(error, 'FENCE_LOST')) {
          // Unless it was our own commit that has just set the message PROCESSED.
          if (state.commit.kind === 'none') stop.abort(error);
          return;
        }
        telemetry.log.warn('A heartbeat failed; the next one tries again', {
          eventId: event.eventId,
          error: error as Error,
        });
      }
    }
  }

  function logThrow(error: unknown): void {
    telemetry.log.error('The handler threw after its commit; the message is processed', {
      eventId: event.eventId,
      error: error as Error,
    });
  }
}

async function settle(handle: () => Promise<unknown>): Promise<LeasedRun> {
  try {
    return { kind: 'returned', result: await handle() };
  } catch (error) {
    return { kind: 'threw', error };
  }
}

/** What a handler has done so far that decides about its message. */
interface ContextState {
  /** `unknown`: a commit whose answer was lost, and which may still happen. */
  commit:
    | { readonly kind: 'none' | 'running' | 'done' }
    | { readonly kind: 'unknown'; readonly error: unknown };
  /** The commit that is under way; it never rejects. */
  committing: Promise<void>;
  blocked: EffectInProgress | undefined;
  /** Whether the handler is over: what it left behind may begin nothing more. */
  ended: boolean;
}

function createContext(
  deps: LeasedRunDeps,
  event: Envelope,
  claim: Claim,
  effects: Effects,
  signal: AbortSignal,
): { readonly ctx: LeasedContext; readonly state: ContextState } {
  const { clock, telemetry, inbox, outbox } = deps;
  const state: ContextState = {
    commit: { kind: 'none' },
    committing: Promise.resolve(),
    blocked: undefined,
    ended: false,
  };

  function refuseWhenEnded(what: string): void {
    if (!state.ended) return;
    const error = new MailroomError(
      'HANDLER_ENDED',
      `${what} after its handler had returned: the message is settled without it. Await everything that the handler begins.`,
    );
    telemetry.log.error(error.message, { eventId: event.eventId });
    throw error;
  }

  async function once<T>(
    name: string,
    effect: (idempotencyKey: string, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    refuseWhenEnded(`ctx.once("${name}")`);
    if (state.commit.kind !== 'none') throw afterCommit(`ctx.once("${name}")`);
    signal.throwIfAborted();
    try {
      return await effects.once(name, (idempotencyKey) => effect(idempotencyKey, signal));
    } catch (error) {
      if (isErrorWithCode(error, 'EFFECT_IN_PROGRESS')) state.blocked = error as EffectInProgress;
      throw error;
    }
  }

  async function commit({ writes = [], events = [] }: Commit): Promise<void> {
    refuseWhenEnded('ctx.commit');
    if (state.commit.kind !== 'none') throw afterCommit('ctx.commit');
    if (state.blocked !== undefined) throw state.blocked;
    signal.throwIfAborted();
    state.commit = { kind: 'running' }; // before the first await: two at once must not both pass
    let sent = false;
    try {
      const actions = [...writes, ...(await outbox.entries(events, event))];
      checkTransaction(actions, clock.now(), 1);
      sent = true;
      await inbox.commit(claim, actions);
      state.commit = { kind: 'done' };
      telemetry.count('EventsCommitted', eventCount(actions));
    } catch (error) {
      // Only a refusal says that nothing was written, and so lets the handler commit something else.
      const refused = !sent || isTransactionCancelled(error) || isErrorWithCode(error, 'FENCE_LOST');
      state.commit = refused ? { kind: 'none' } : { kind: 'unknown', error };
      throw error;
    }
  }

  return {
    state,
    ctx: {
      attempt: claim.attempt,
      signal,
      remainingMs: () => Math.max(0, claim.endsBy - clock.now()),
      once: (name, effect) => handled(once(name, effect)),
      commit: (wanted) => {
        const result = handled(commit(wanted));
        const settled = result.catch(() => {});
        state.committing = Promise.all([state.committing, settled]).then(() => {});
        return result;
      },
    },
  };
}

/** A promise whose rejection ends no process when the handler forgets to await it. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

function afterCommit(what: string): MailroomError {
  return new MailroomError(
    'AFTER_COMMIT',
    `${what} after ctx.commit: a message is committed once, and that is the last thing its handler does. Put everything into one commit.`,
  );
}
