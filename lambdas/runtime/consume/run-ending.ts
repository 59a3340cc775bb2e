import { receiptWarning } from '../base/bridge-receipt.ts';
import { CLOCK_SKEW_MS, timeText } from '../base/clock.ts';
import { errorCode, errorMessage, isMailroomError, MailroomError } from '../base/errors.ts';
import { isPoison, poison } from '../base/poison.ts';
import type { InboxRefusal } from '../inbox/inbox.ts';
import { ALONE_FROM } from '../inbox/inbox-conditions.ts';
import { backoffMs } from '../store/backoff.ts';
import type { AskedWait } from '../store/inbox-row.ts';
import { Overtaken } from '../store/last-sequence.ts';
import { reportEffectsAtEnd } from './claimed-effects.ts';
import type { ClaimedMessage } from './consumer-context.ts';
import { writeHint } from './failed-hints.ts';
import type { LeasedRun } from './leased-run.ts';
import { FENCE_LOST, failedAs, type MessageEnd, type MessageOutcome, report } from './message-outcome.ts';
import { outOfTime, RESPONSE_MARGIN_MS } from './out-of-time.ts';

/** The maximum time spent retrying the write that ends a claim, because the other messages of the batch wait for the response. */
const RECORD_MAX_MS = 20_000;

/** The outcome of a message that this worker held, or the reason for which it does not hold it. */
export type ClaimEnd = MessageOutcome | InboxRefusal;

/** The end of a claim. */
export interface Ending {
  /** Writes it in the row, under the claim's fence. @default a commit has written it, or the row keeps its lease */
  readonly write?: () => Promise<InboxRefusal | undefined>;
  readonly end: MessageEnd;
  /** The report of the message's effects that goes with it. @default none */
  readonly effectsAre?: 'rejected' | 'processed' | undefined;
  /** Lists the message as FAILED, with its next attempt at this time, or as failed no longer. @default neither */
  readonly failedUntil?: number | 'never';
}

/** The table of endings: the end of a claim, by that of its handler's run. */
export function endingOf(claimed: ClaimedMessage, run: LeasedRun): Ending {
  const { telemetry, inbox, clock, config, delivery, delays, claim, effects } = claimed;
  const ended = Object.fromEntries(effects.ended);
  // Uncounted attempts follow the same schedule; otherwise a hanging provider would use up the receives in minutes.
  const uncounted = claim.attempt + Math.min(claim.unfinished, ALONE_FROM);
  /** No attempt follows. */
  const rejection = (error: unknown): Ending => ({
    write: () => inbox.reject(claim, error, ended),
    end: { is: 'rejected', error },
    effectsAre: 'rejected',
    failedUntil: 'never',
  });
  switch (run.kind) {
    case 'committed':
      return PROCESSED;
    case 'returned': {
      const warning = receiptWarning(run.result);
      const write = async () => {
        const refusal = await inbox.complete(claim, run.result);
        if (warning !== undefined) telemetry.log.warn(warning);
        return refusal;
      };
      return { ...PROCESSED, write };
    }
    // An effect may still be running elsewhere, until it must have ended; or another event of the aggregate was applied. The message waits.
    case 'blocked': {
      const { error } = run;
      const afterMs = delays.untilMs(error.until);
      const write = () => inbox.release(claim, clock.now() + afterMs, ended);
      return { write, end: { is: 'leased', error, afterMs } };
    }
    // Its handler has not started, so no attempt is counted, whatever the number of its waits.
    case 'limited': {
      const { until, wait } = run;
      const afterMs = delays.slotMs(until);
      const failedUntil = clock.now() + afterMs;
      const write = () => inbox.release(claim, failedUntil, ended, undefined, wait);
      return { write, end: { is: 'limited', error: limited(wait, failedUntil), afterMs }, failedUntil };
    }
    // The table was unreachable while the handler ran. If this cannot be recorded either, the next claim takes over.
    case 'outage': {
      const { error } = run;
      const afterMs = delays.outageMs(delivery.receives);
      const failedUntil = clock.now() + afterMs;
      const write = () => inbox.release(claim, failedUntil, ended, error);
      return { write, end: { is: 'outage', error, afterMs }, failedUntil };
    }
    // The run ended because the time was up: retried like any failure, but counted as an attempt only if it ran alone.
    case 'cut-off': {
      const { error } = run;
      if (claim.unfinished >= ALONE_FROM && claim.attempt >= config.maxAttempts)
        return rejection(attemptsSpent(claim.attempt, error));
      const afterMs = delays.retryMs(uncounted);
      const failedUntil = clock.now() + afterMs;
      const write = () => inbox.cutOff(claim, error, failedUntil, ended);
      return { write, end: { is: 'failed', error, afterMs }, failedUntil };
    }
    // The handler is still running: its lease stays, and no worker retries until the function has certainly stopped.
    case 'out-of-time': {
      const error = outOfTime();
      const stoppedMs = delays.untilMs(claim.endsBy + CLOCK_SKEW_MS);
      const { lostTimeToTable } = run;
      const againMs = lostTimeToTable ? delays.outageMs(delivery.receives) : delays.retryMs(uncounted);
      const afterMs = Math.max(stoppedMs, againMs);
      return { end: { is: lostTimeToTable ? 'outage' : 'out-of-time', error, afterMs } };
    }
    case 'stale':
      return { write: () => inbox.discardStale(claim), end: { is: 'stale' }, failedUntil: 'never' };
    case 'not-started':
      return rejection(run.error);
    case 'threw':
      return failure(claimed, run.error, rejection);
  }
}

function limited({ limit }: AskedWait, until: number): MailroomError {
  const name = limit === undefined ? '' : ` ${JSON.stringify(limit.name)}`;
  return new MailroomError(
    'LIMITED',
    `The limit${name} has no token or no place for the message; it is delivered again at ${timeText(until)}, and no attempt is counted.`,
  );
}

/** The handler threw. */
function failure(
  { inbox, clock, config, delays, claim, effects }: ClaimedMessage,
  error: unknown,
  rejection: (error: unknown) => Ending,
): Ending {
  if (isMailroomError(error, 'ALREADY_PROCESSED'))
    return { ...PROCESSED, effectsAre: undefined, write: () => inbox.complete(claim, undefined) };
  if (isPoison(error)) return rejection(error);
  const ended = Object.fromEntries(effects.ended);
  const isLater = isMailroomError(error, 'RETRY_LATER');
  const cause = isLater ? (error.cause ?? error) : error;
  const asked = isLater ? delays.asked(claim, error) : undefined;
  if (asked !== undefined) {
    // A provider's rate limit says nothing about the message, so a wait that the handler asks for counts no attempt. It is bounded by
    // time, and by the receives of the queue.
    const { afterMs, wait } = asked;
    const failedUntil = clock.now() + afterMs;
    const write = () => inbox.release(claim, failedUntil, ended, cause, wait);
    return { write, end: { is: 'retry-later', error: cause, afterMs }, failedUntil };
  }
  if (claim.attempt >= config.maxAttempts) return rejection(attemptsSpent(claim.attempt, cause));
  const afterMs = delays.retryMs(claim.attempt, error);
  const failedUntil = clock.now() + afterMs;
  const write = () => inbox.fail(claim, cause, failedUntil, ended);
  return { write, end: { is: failedAs(cause), error: cause, afterMs }, failedUntil };
}

/** The handler ran to its end. */
const PROCESSED: Ending = { end: { is: 'processed' }, effectsAre: 'processed', failedUntil: 'never' };

/**
 * Records and reports the end of a claim. Hints come last: nothing depends on them.
 *
 * @throws the table's error: the row then holds the outcome of the last successful write
 */
export async function record(
  claimed: ClaimedMessage,
  { write, end, effectsAre, failedUntil }: Ending,
): Promise<ClaimEnd> {
  const { claim, telemetry } = claimed;
  const { endsBy, message } = claim;
  const told = () => report(claimed, end);
  // Before the write, which may fail for the same cause.
  const early = end.is === 'outage' ? told() : undefined;
  try {
    const refusal = write && (await whileReachable(claimed, write));
    if (refusal !== undefined) {
      const { status } = refusal;
      telemetry.count('FenceRefused');
      telemetry.log.warn('A worker finished a message after losing its lease; nothing was written', {
        status,
        code: FENCE_LOST,
      });
      return refusal;
    }
  } catch (error) {
    if (!(error instanceof Overtaken)) throw error;
    return record(claimed, endingOf(claimed, { kind: 'blocked', error }));
  }
  if (effectsAre !== undefined) reportEffectsAtEnd(claimed, effectsAre);
  const outcome = early ?? told();
  // There may be a hint to remove only if there was a failure: each leaves its error, also one that counts no attempt.
  const isListed = typeof failedUntil === 'number' || claim.lastError !== undefined;
  if (failedUntil !== undefined && isListed) await writeHint(claimed, message.eventId, failedUntil, endsBy);
  return outcome;
}

/** Retries a write while the table is unreachable and time remains. If the write never succeeds, the function appears to have died. */
async function whileReachable<T>(
  { clock, random, inbox, claim }: ClaimedMessage,
  write: () => Promise<T>,
): Promise<T> {
  const lastTryAt = Math.min(clock.now() + RECORD_MAX_MS, claim.endsBy - 2 * RESPONSE_MARGIN_MS);
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await write();
    } catch (error) {
      const pauseMs = backoffMs(attempt, 200, 2_000, random);
      if (!inbox.isOutage(error) || clock.now() + pauseMs > lastTryAt) throw error;
      await clock.sleep(pauseMs);
    }
  }
}

/** Makes the poison error of a message whose attempts are exhausted. @param error - that of the last one, which becomes the cause */
export function attemptsSpent(attempts: number, error: unknown): MailroomError {
  // Uncut: redaction must see the whole text to find what it looks for.
  const last =
    errorCode(error) === 'UNKNOWN'
      ? errorMessage(error, Number.POSITIVE_INFINITY)
      : `${errorCode(error)}: ${errorMessage(error, Number.POSITIVE_INFINITY)}`;
  return poison('ATTEMPTS_EXHAUSTED', spentText(attempts, last), { cause: error });
}

/** As {@link attemptsSpent}, of a message whose row has the error of its last attempt. */
export function spentBefore(attempts: number, lastError: string | undefined): MailroomError {
  return poison('ATTEMPTS_EXHAUSTED', spentText(attempts, String(lastError)));
}

function spentText(attempts: number, last: string): string {
  return `Rejected after ${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}. ${last}`;
}
