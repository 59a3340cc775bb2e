import type { Clock } from './clock.ts';
import type { ConsumerConfig } from './config.ts';
import { isErrorWithCode, isTransactionCancelled, MailroomError } from './errors.ts';
import type { Envelope } from './event.ts';
import type { LeasedContext, LeasedHandler } from './handler.ts';
import type { Claim, Inbox } from './inbox.ts';
import type { EffectInProgress, Effects } from './once.ts';
import { checkTransaction, type Outbox } from './outbox.ts';
import type { Queue } from './queue.ts';
import type { Telemetry } from './telemetry.ts';

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
 * Runs one leased handler under its claim. While it runs, one heartbeat extends both the inbox lease and the SQS
 * visibility timeout, a third of the shorter one apart, and never past the end of the function.
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
    .then((): LeasedRun => ({ kind: 'out-of-time' }));
  const end = await Promise.race([work, timeIsUp]);
  over.abort();
  if (end.kind === 'out-of-time') stop.abort(new MailroomError('OUT_OF_TIME', "The function's time is up"));
  await heartbeat;

  if (state.commit !== 'done')
    return state.blocked === undefined ? end : { kind: 'blocked', error: state.blocked };
  if (end.kind === 'threw') {
    telemetry.log.error('The handler threw after its commit; the message is processed', {
      eventId: event.eventId,
      error: end.error as Error,
    });
  }
  return { kind: 'committed' };

  async function run(): Promise<LeasedRun> {
    try {
      return { kind: 'returned', result: await handler.handle(event as never, ctx) };
    } catch (error) {
      return { kind: 'threw', error };
    }
  }

  async function beat(): Promise<void> {
    const everyMs = Math.min(config.leaseMs, config.visibilityTimeoutMs || config.leaseMs) / 3;
    for (;;) {
      await clock.sleep(everyMs, over.signal);
      if (over.signal.aborted || state.commit === 'done') return;
      try {
        await inbox.renew(claim);
        const hiddenMs = Math.min(config.visibilityTimeoutMs, claim.endsBy + 1_000 - clock.now());
        await queue.changeVisibility(receiptHandle, Math.max(1, Math.ceil(hiddenMs / 1_000)));
      } catch (error) {
        if (isErrorWithCode(error, 'FENCE_LOST')) {
          // Unless it was our own commit that has just set the message PROCESSED.
          if (state.commit === 'none') stop.abort(error);
          return;
        }
        telemetry.log.warn('A heartbeat failed; the next one tries again', {
          eventId: event.eventId,
          error: error as Error,
        });
      }
    }
  }
}

/** What a handler has done so far that decides about its message. */
interface ContextState {
  /** `unknown`: a commit whose answer was lost, and which may still happen. */
  commit: 'none' | 'running' | 'done' | 'unknown';
  blocked: EffectInProgress | undefined;
}

function createContext(
  deps: LeasedRunDeps,
  event: Envelope,
  claim: Claim,
  effects: Effects,
  signal: AbortSignal,
) {
  const { clock, inbox, outbox } = deps;
  const state: ContextState = { commit: 'none', blocked: undefined };

  const ctx: LeasedContext = {
    attempt: claim.attempt,
    signal,
    remainingMs: () => Math.max(0, claim.endsBy - clock.now()),

    once: async (name, effect) => {
      if (state.commit !== 'none') throw afterCommit(`ctx.once("${name}")`);
      signal.throwIfAborted();
      try {
        return await effects.once(name, (idempotencyKey) => effect(idempotencyKey, signal));
      } catch (error) {
        if (isErrorWithCode(error, 'EFFECT_IN_PROGRESS')) state.blocked = error as EffectInProgress;
        throw error;
      }
    },

    commit: async ({ writes = [], events = [] }) => {
      if (state.commit !== 'none') throw afterCommit('ctx.commit');
      if (state.blocked !== undefined) throw state.blocked;
      signal.throwIfAborted();
      const entries = await outbox.entries(events, event);
      const actions = [...writes, ...entries];
      checkTransaction(actions, clock.now(), 1);
      state.commit = 'running';
      try {
        await inbox.commit(claim, actions);
      } catch (error) {
        // Only a refusal says that nothing was written, and so lets the handler commit something else.
        const refused = isTransactionCancelled(error) || isErrorWithCode(error, 'FENCE_LOST');
        state.commit = refused ? 'none' : 'unknown';
        throw error;
      }
      state.commit = 'done';
    },
  };
  return { ctx, state };
}

function afterCommit(what: string): MailroomError {
  return new MailroomError(
    'AFTER_COMMIT',
    `${what} after ctx.commit: a message is committed once, and that is the last thing its handler does. Put everything into one commit.`,
  );
}
