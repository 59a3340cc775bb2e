import { OVER, withDeadline } from '../base/clock.ts';
import { isMailroomError, type MailroomError } from '../base/errors.ts';
import { isPoison } from '../base/poison.ts';
import type { HandledEvent } from '../events/external-event.ts';
import { runInside } from './around.ts';
import type { ClaimedMessage } from './consumer-context.ts';
import { isStale } from './expiry.ts';
import type { LeasedHandler } from './handler.ts';
import { logUnhandled, unseenFailures } from './handler-calls.ts';
import { type Blocked, type HandlerRun, handlerRun, leasedContext, take } from './leased-context.ts';
import { awaitToken, type ItsTurn, type NotYet } from './limited-run.ts';
import { readEvent } from './message.ts';
import { effectsIdle } from './once.ts';
import { outOfTime, RESPONSE_MARGIN_MS } from './out-of-time.ts';

/** The end of a leased handler's run. */
export type LeasedRun =
  | { readonly kind: 'committed' }
  | { readonly kind: 'returned'; readonly result: unknown }
  | { readonly kind: 'threw'; readonly error: unknown }
  /** Its attempts are exhausted, or its event cannot be read. */
  | { readonly kind: 'not-started'; readonly error: unknown }
  | NotYet
  /** It has waited for longer than its handler takes, perhaps for its token. */
  | { readonly kind: 'stale' }
  /** An effect may still be running elsewhere, or another event was applied: the message waits, whatever the handler returned or threw. */
  | { readonly kind: 'blocked'; readonly error: Blocked }
  /** It failed because Mailroom could not reach its table. */
  | { readonly kind: 'outage'; readonly error: unknown }
  /** It ended because the function's time was up. */
  | { readonly kind: 'cut-off'; readonly error: unknown }
  /** The function's time is up, but the handler is still running. `lostTimeToTable`: slow table calls used up its time, so it is not counted. */
  | { readonly kind: 'out-of-time'; readonly lostTimeToTable: boolean };

/** A handler that starts later than this in its invocation was delayed by the table, milliseconds. */
const LATE_MS = 2_000;

/** The share of that margin that may be spent on recording that the time was up, milliseconds. */
const MARK_MAX_MS = RESPONSE_MARGIN_MS / 2;

/** The maximum wait for a renewal in progress: a hanging one must not use up the time to complete the message, milliseconds. */
const LAST_RENEWAL_MAX_MS = 1_000;

/**
 * Runs one leased handler under its claim until everything that it started has ended: an un-awaited commit or effect is
 * awaited here. During the run, a renewal extends both the inbox lease and the SQS visibility timeout, at intervals of a third
 * of the shorter one, and never past the end of the function.
 *
 * When the function's time is nearly up, the handler's signal is aborted and the batch is answered without it, except while an
 * effect is running, or if the run has a place of its limit: after its response, a function is frozen and later thawed, and the effect
 * would continue when another worker holds its message, or the run beside more than its limit allows. Instead, they are stopped together
 * with their function.
 */
export async function runLeased(
  claimed: ClaimedMessage,
  handler: LeasedHandler,
  envelope: HandledEvent,
): Promise<LeasedRun> {
  let event: HandledEvent;
  try {
    // Under the claim, so that a schema that kills the process leaves a claim without a result.
    event = await readEvent(handler.definition, envelope);
  } catch (error) {
    return { kind: 'not-started', error };
  }
  const turn = await awaitToken(claimed, handler, event);
  if (turn.kind !== 'its-turn') return turn;
  if (isStale(claimed, handler)) {
    await turn.leave?.();
    return { kind: 'stale' };
  }
  const startedAt = claimed.clock.now();
  try {
    return await runInTurn(claimed, handler, event, turn);
  } finally {
    await turn.leave?.(claimed.clock.now() - startedAt);
  }
}

async function runInTurn(
  claimed: ClaimedMessage,
  handler: LeasedHandler,
  event: HandledEvent,
  { sleptMs, leave }: ItsTurn,
): Promise<LeasedRun> {
  const { inbox, telemetry, claim, clock, delivery } = claimed;
  // A slow claim or bucket also counts as an outage: a handler that starts late did not get its full time.
  const late = clock.now() - delivery.beganAt - sleptMs > LATE_MS;
  const over = new AbortController();
  const stop = new AbortController();
  const run = handlerRun(claimed, event, stop.signal);

  const renewals = { isUnderWay: false };
  const renewing = keepLease(run, stop, over.signal, renewals);
  const work = toTheEnd(run, handler);
  const workMs = claim.endsBy - RESPONSE_MARGIN_MS - clock.now();
  const end = await withDeadline(clock, workMs, work, async (): Promise<LeasedRun> => {
    const lostTimeToTable = late || run.state.waiting > 0;
    take(run, { is: 'cut-off', lostTimeToTable });
    stop.abort(outOfTime());
    // In the row, if time allows: the response must be sent before the function is stopped.
    const marked = inbox
      .markOutOfTime(claim, outOfTime(), lostTimeToTable)
      .catch((error: unknown) =>
        telemetry.log.warn('A message that ran out of time could not be marked', { error: error as Error }),
      );
    await withDeadline(clock, MARK_MAX_MS, marked, () => {});
    await effectsIdle(claimed);
    if (leave !== undefined) await work; // it has a place until it has ended, or its function is stopped
    return { kind: 'out-of-time', lostTimeToTable };
  });
  over.abort(OVER);
  take(run, { is: 'ended' });
  if (renewals.isUnderWay) {
    const longestMs = Math.min(LAST_RENEWAL_MAX_MS, (claim.endsBy - clock.now()) / 4);
    await withDeadline(clock, longestMs, renewing, () => {});
  }
  return explained(run, outcomeOf(run, end));
}

/** Awaits the handler and every call that it started: an un-awaited call may start another one when it ends, and so on. */
async function toTheEnd(run: HandlerRun, handler: LeasedHandler): Promise<LeasedRun> {
  const { span, clock } = run.claimed;
  const ctx = leasedContext(run);
  const handle = async () => {
    try {
      run.signal.throwIfAborted(); // the function around it may have waited for longer than this worker holds the message
      return await handler.handle(run.event as never, ctx);
    } finally {
      take(run, { is: 'returned' }); // not after the function around it: a call that fails meanwhile was not awaited
    }
  };
  const refuse = (error: MailroomError) => take(run, { is: 'not-awaited', error });
  const { telemetry } = run.claimed;
  const inside = { around: handler.around, events: [run.event], ctx, handle, refuse, telemetry };
  const end = await returnedOrThrew(() => span.run(() => runInside(inside)));
  let ended: number;
  do {
    ended = run.calls.length;
    await Promise.allSettled(run.calls);
    await clock.sleep(0); // code that waited for these calls continues within this turn
  } while (run.calls.length > ended);
  take(run, { is: 'ended' });
  return end;
}

async function returnedOrThrew(handle: () => Promise<unknown>): Promise<LeasedRun> {
  try {
    return { kind: 'returned', result: await handle() };
  } catch (error) {
    return { kind: 'threw', error };
  }
}

/** @param renewals - told whether a renewal is under way */
async function keepLease(
  run: HandlerRun,
  stop: AbortController,
  over: AbortSignal,
  renewals: { isUnderWay: boolean },
): Promise<void> {
  const { config, clock, inbox, telemetry, claim, delivery } = run.claimed;
  const { timeoutMs = 0, hide } = delivery.visibility ?? {};
  const everyMs = Math.min(config.leaseMs, timeoutMs || config.leaseMs) / 3;
  for (;;) {
    renewals.isUnderWay = false;
    await clock.sleep(everyMs, over);
    if (over.aborted || run.state.commit.kind === 'done') return;
    renewals.isUnderWay = true;
    try {
      await inbox.renew(claim);
      if (over.aborted) return; // answered late: the end of the run has decided when the message is shown again
      await hide?.(Math.max(1, Math.min(timeoutMs, claim.endsBy + 1_000 - clock.now())));
    } catch (error) {
      if (isMailroomError(error, 'FENCE_LOST')) {
        // Unless this run's own commit has just set the message PROCESSED.
        if (run.state.commit.kind === 'none') stop.abort(error);
        return;
      }
      telemetry.log.warn('A lease renewal failed; the next one tries again', { error: error as Error });
    }
  }
}

/** Determines the outcome of the run from everything that the handler started, not only from its return value. */
function outcomeOf(run: HandlerRun, end: LeasedRun): LeasedRun {
  const { telemetry } = run.claimed;
  const { commit, blocked, notAwaited } = run.state;
  const unhandled = unseenFailures(run).map(({ error }) => error);
  if (commit.kind === 'done') {
    if (end.kind === 'threw') {
      const error = end.error as Error;
      telemetry.log.error('The handler threw after its commit; the message is processed', { error });
    }
    for (const error of unhandled) logUnhandled(telemetry, error);
    return { kind: 'committed' };
  }
  if (blocked !== undefined) return { kind: 'blocked', error: blocked };
  // The outcome of a commit is unknown: whatever the handler returned or threw, the message must not become PROCESSED without its
  // writes. It is set FAILED, which the row refuses if the commit happened, and retried if it did not.
  if (commit.kind === 'unknown' && end.kind !== 'out-of-time') return { kind: 'threw', error: commit.error };
  const isPoisoned = end.kind === 'threw' && isPoison(end.error);
  if (notAwaited !== undefined && end.kind !== 'out-of-time' && !isPoisoned)
    return { kind: 'threw', error: notAwaited };
  const done =
    end.kind === 'returned' || (end.kind === 'threw' && isMailroomError(end.error, 'ALREADY_PROCESSED'));
  if (done && unhandled.length > 0) {
    // An un-awaited AlreadyProcessed does not speak for the other failures.
    const error = unhandled.find((failure) => !isMailroomError(failure, 'ALREADY_PROCESSED')) ?? unhandled[0];
    return { kind: 'threw', error };
  }
  return end;
}

/** Attributes a handler's failure to an outage or to lack of time, if that was the cause. */
function explained({ state: { outage, cutOff } }: HandlerRun, end: LeasedRun): LeasedRun {
  if (end.kind !== 'threw' || isPoison(end.error) || isMailroomError(end.error, 'ALREADY_PROCESSED'))
    return end;
  if (outage !== undefined) return { kind: 'outage', error: outage.error };
  if (cutOff === undefined) return end;
  return { kind: cutOff.lostTimeToTable ? 'outage' : 'cut-off', error: outOfTime(end.error) };
}
