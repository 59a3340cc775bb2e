import type { ConsumerConfig } from '../config.ts';
import { isAlreadyProcessed, isErrorWithCode, isPoison, MailroomError } from '../errors.ts';
import type { Envelope } from '../event.ts';
import type { Claim } from '../store/inbox-conditions.ts';
import type { Delivery } from './delivery.ts';
import type { EffectInProgress } from './effect-persistence.ts';
import type { LeasedHandler } from './handler.ts';
import { createLeasedContext, type LeasedContextDeps, logUnheard } from './leased-context.ts';
import type { Effects } from './once.ts';
import type { Queue } from './queue.ts';

/** What running a leased handler needs. */
export interface LeasedRunDeps extends LeasedContextDeps {
  readonly config: ConsumerConfig;
  readonly queue: Queue;
}

/** How a leased handler ended. */
export type LeasedRun =
  | { readonly kind: 'committed' }
  | { readonly kind: 'returned'; readonly result: unknown }
  | { readonly kind: 'threw'; readonly error: unknown }
  /** An effect may still be running elsewhere: whatever the handler made of it, the message waits. */
  | { readonly kind: 'blocked'; readonly error: EffectInProgress }
  /** It failed because Mailroom could not reach its table. */
  | { readonly kind: 'outage'; readonly error: unknown }
  /** It ended because the function's time was up. */
  | { readonly kind: 'cut-off'; readonly error: unknown }
  /** The function's time is up, and the handler still runs. `robbed`: the table took its time, and so it does not count. */
  | { readonly kind: 'out-of-time'; readonly robbed: boolean };

/** The batch's response must be out this long before the function is stopped. */
export const RESPONSE_MARGIN_MS = 1_000;

/** A handler that begins later than this after its invocation waited for the table. */
const LATE_MS = 2_000;

/** How much of that margin may be spent on saying on the row that the time was up. */
const MARK_MAX_MS = RESPONSE_MARGIN_MS / 2;

/** The error of a handler that was not done when the function's time was up. */
export function outOfTime(cause?: unknown): MailroomError {
  return new MailroomError('OUT_OF_TIME', "The handler was still running when the function's time was up", {
    cause,
  });
}

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
 * @param delivery - the receive that is worked on
 */
export async function runLeased(
  deps: LeasedRunDeps,
  handler: LeasedHandler,
  event: Envelope,
  claim: Claim,
  effects: Effects,
  delivery: Pick<Delivery, 'receiptHandle' | 'beganAt'>,
): Promise<LeasedRun> {
  const { config, clock, telemetry, inbox, queue } = deps;
  const over = new AbortController();
  const stop = new AbortController();
  const { ctx, state } = createLeasedContext(deps, event, claim, effects, stop.signal);

  const heartbeat = beat();
  const work = run();
  // A slow claim is an outage too: a handler that begins late did not have the time it is entitled to.
  const late = clock.now() - delivery.beganAt > LATE_MS;
  let cutOff = false;
  let robbed = false;
  const timeIsUp = clock
    .sleep(claim.endsBy - RESPONSE_MARGIN_MS - clock.now(), over.signal)
    .then(async (): Promise<LeasedRun> => {
      if (over.signal.aborted) return { kind: 'out-of-time', robbed };
      cutOff = true;
      robbed = late || state.waiting > 0;
      stop.abort(outOfTime());
      await markOutOfTime();
      await effects.idle();
      return { kind: 'out-of-time', robbed };
    });
  const end = await Promise.race([work, timeIsUp]);
  over.abort();
  state.ended = true;
  if (end.kind !== 'out-of-time') await state.committing; // one that began in the very last moment
  // Not for long: a heartbeat that hangs must not use up the time in which the message is completed.
  await Promise.race([heartbeat, clock.sleep(Math.min(1_000, (claim.endsBy - clock.now()) / 4))]);

  const verdict = settled();
  if (verdict.kind !== 'threw' || isPoison(verdict.error) || isAlreadyProcessed(verdict.error))
    return verdict;
  if (state.outage !== undefined) return { kind: 'outage', error: state.outage.error };
  if (robbed) return { kind: 'outage', error: outOfTime(verdict.error) };
  return cutOff ? { kind: 'cut-off', error: outOfTime(verdict.error) } : verdict;

  /** How the run ended, by all that the handler began and not only by what it returned. */
  function settled(): LeasedRun {
    // What failed without being awaited: the handler ended without knowing that its work is not done.
    const unheard = state.failures.filter(({ call }) => !call.heard).map(({ error }) => error);
    if (state.commit.kind === 'done') {
      if (end.kind === 'threw') logThrow(end.error);
      for (const error of unheard) logUnheard(telemetry, event, error);
      return { kind: 'committed' };
    }
    if (state.blocked !== undefined) return { kind: 'blocked', error: state.blocked };
    // A commit of which nobody knows how it ended: whatever the handler says, the message must not be settled without
    // its writes. It is set FAILED, which the row refuses if the commit happened, and tried again if it did not.
    if (state.commit.kind === 'unknown' && end.kind !== 'out-of-time') {
      return { kind: 'threw', error: state.commit.error };
    }
    const done = end.kind === 'returned' || (end.kind === 'threw' && isAlreadyProcessed(end.error));
    if (done && unheard.length > 0) {
      // One that says "already processed" speaks for itself only.
      const error = unheard.find((failure) => !isAlreadyProcessed(failure)) ?? unheard[0];
      return { kind: 'threw', error };
    }
    return end;
  }

  /** While there is time for it: the response must be out before the function is stopped. */
  async function markOutOfTime(): Promise<void> {
    const marked = inbox.markOutOfTime(claim, outOfTime(), robbed).then(
      () => {},
      (error: unknown) =>
        telemetry.log.warn('A message that ran out of time could not be marked so', {
          eventId: event.eventId,
          error: error as Error,
        }),
    );
    await Promise.race([marked, clock.sleep(MARK_MAX_MS, over.signal)]);
  }

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
        await queue.changeVisibility(delivery.receiptHandle, Math.max(1, Math.ceil(hiddenMs / 1_000)));
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
