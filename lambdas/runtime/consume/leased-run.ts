import { withDeadline } from '../deadline.ts';
import { isMailroomError, isPoison, MailroomError } from '../errors.ts';
import type { Envelope } from '../event.ts';
import type { EffectInProgress } from '../store/inbox-effect.ts';
import { markOutOfTime, renewLease } from '../store/inbox-lease.ts';
import type { Delivery } from './delivery.ts';
import type { LeasedHandler } from './handler.ts';
import { type HandlerRun, handlerRun, leasedContext, logUnheard } from './leased-context.ts';
import { type Effects, effectsIdle } from './once.ts';

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

/** How long a heartbeat that is under way is waited for: one that hangs must not use up the time to complete the message. */
const LAST_BEAT_MAX_MS = 1_000;

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
 * @param effects - the side effects of the claim under which it runs
 * @param delivery - the receive that is worked on
 */
export async function runLeased(
  effects: Effects,
  handler: LeasedHandler,
  event: Envelope,
  delivery: Pick<Delivery, 'receiptHandle' | 'beganAt'>,
): Promise<LeasedRun> {
  const { claim } = effects;
  const { clock } = effects.ctx;
  const over = new AbortController();
  const stop = new AbortController();
  const run = handlerRun(effects, event, stop.signal);
  // A slow claim is an outage too: a handler that begins late did not have the time it is entitled to.
  const late = clock.now() - delivery.beganAt > LATE_MS;

  const beating = heartbeat(run, delivery.receiptHandle, stop, over.signal);
  const work = toTheEnd(run, handler);
  const workMs = claim.endsBy - RESPONSE_MARGIN_MS - clock.now();
  const end = await withDeadline(clock, workMs, work, async (): Promise<LeasedRun> => {
    const robbed = late || run.waiting > 0;
    run.cutOff = { robbed };
    stop.abort(outOfTime());
    await sayOutOfTime(run, robbed);
    await effectsIdle(effects);
    return { kind: 'out-of-time', robbed };
  });
  over.abort();
  run.ended = true;
  await withDeadline(clock, Math.min(LAST_BEAT_MAX_MS, (claim.endsBy - clock.now()) / 4), beating, () => {});
  return explained(run, settled(run, end));
}

/** The handler, and every call that it began: one that was not awaited may begin another when it ends, and so on. */
async function toTheEnd(run: HandlerRun, handler: LeasedHandler): Promise<LeasedRun> {
  const end = await returnedOrThrew(() => handler.handle(run.event as never, leasedContext(run)));
  let ended: number;
  do {
    ended = run.calls.length;
    await Promise.allSettled(run.calls);
    await run.ctx.clock.sleep(0); // what waited for these calls goes on within this turn
  } while (run.calls.length > ended);
  run.ended = true;
  return end;
}

async function returnedOrThrew(handle: () => Promise<unknown>): Promise<LeasedRun> {
  try {
    return { kind: 'returned', result: await handle() };
  } catch (error) {
    return { kind: 'threw', error };
  }
}

/** Says on the row that the time was up, while there is time for it: the response must be out before the function is stopped. */
async function sayOutOfTime({ ctx, claim, event }: HandlerRun, robbed: boolean): Promise<void> {
  const marked = markOutOfTime(ctx.inbox, claim, outOfTime(), robbed).catch((error: unknown) =>
    ctx.telemetry.log.warn('A message that ran out of time could not be marked so', {
      eventId: event.eventId,
      error: error as Error,
    }),
  );
  await withDeadline(ctx.clock, MARK_MAX_MS, marked, () => {});
}

async function heartbeat(
  run: HandlerRun,
  receiptHandle: string,
  stop: AbortController,
  over: AbortSignal,
): Promise<void> {
  const { config, clock, inbox, queue, telemetry } = run.ctx;
  const { claim, event } = run;
  const everyMs = Math.min(config.leaseMs, config.visibilityTimeoutMs || config.leaseMs) / 3;
  for (;;) {
    await clock.sleep(everyMs, over);
    if (over.aborted || run.commit.kind === 'done') return;
    try {
      await renewLease(inbox, claim);
      const hiddenMs = Math.min(config.visibilityTimeoutMs, claim.endsBy + 1_000 - clock.now());
      await queue.changeVisibility(receiptHandle, Math.max(1, Math.ceil(hiddenMs / 1_000)));
    } catch (error) {
      if (isMailroomError(error, 'FENCE_LOST')) {
        // Unless it was our own commit that has just set the message PROCESSED.
        if (run.commit.kind === 'none') stop.abort(error);
        return;
      }
      telemetry.log.warn('A heartbeat failed; the next one tries again', {
        eventId: event.eventId,
        error: error as Error,
      });
    }
  }
}

/** How the run ended, by all that the handler began and not only by what it returned. */
function settled({ ctx, event, commit, blocked, failures }: HandlerRun, end: LeasedRun): LeasedRun {
  // What failed without being awaited: the handler ended without knowing that its work is not done.
  const unheard = failures.filter(({ call }) => !call.heard).map(({ error }) => error);
  if (commit.kind === 'done') {
    if (end.kind === 'threw') {
      ctx.telemetry.log.error('The handler threw after its commit; the message is processed', {
        eventId: event.eventId,
        error: end.error as Error,
      });
    }
    for (const error of unheard) logUnheard(ctx.telemetry, event, error);
    return { kind: 'committed' };
  }
  if (blocked !== undefined) return { kind: 'blocked', error: blocked };
  // A commit of which nobody knows how it ended: whatever the handler says, the message must not be settled without
  // its writes. It is set FAILED, which the row refuses if the commit happened, and tried again if it did not.
  if (commit.kind === 'unknown' && end.kind !== 'out-of-time') return { kind: 'threw', error: commit.error };
  const done =
    end.kind === 'returned' || (end.kind === 'threw' && isMailroomError(end.error, 'ALREADY_PROCESSED'));
  if (done && unheard.length > 0) {
    // One that says "already processed" speaks for itself only.
    const error = unheard.find((failure) => !isMailroomError(failure, 'ALREADY_PROCESSED')) ?? unheard[0];
    return { kind: 'threw', error };
  }
  return end;
}

/** Whether a handler that failed did so for a reason that is not its own. */
function explained({ outage, cutOff }: HandlerRun, end: LeasedRun): LeasedRun {
  if (end.kind !== 'threw' || isPoison(end.error) || isMailroomError(end.error, 'ALREADY_PROCESSED'))
    return end;
  if (outage !== undefined) return { kind: 'outage', error: outage.error };
  if (cutOff === undefined) return end;
  return { kind: cutOff.robbed ? 'outage' : 'cut-off', error: outOfTime(end.error) };
}
