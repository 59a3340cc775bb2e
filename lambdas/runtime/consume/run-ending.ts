import { receiptWarning } from '../base/bridge-receipt.ts';
import { CLOCK_SKEW_MS } from '../base/clock.ts';
import { isMailroomError } from '../base/errors.ts';
import { isPoison } from '../base/poison.ts';
import type { InboxRefusal } from '../inbox/inbox.ts';
import { ALONE_FROM } from '../inbox/inbox-conditions.ts';
import type { ClaimedMessage } from './consumer-context.ts';
import { reportEffectsOfRejected } from './effects-in-doubt.ts';
import { type LeasedRun, outOfTime } from './leased-run.ts';
import {
  again,
  attemptsSpent,
  logFailure,
  type MessageOutcome,
  reportFailed,
  reportOutage,
  reportProcessed,
  reportRejected,
} from './message-outcome.ts';
import { askedWait, retryAfterMs, untilMs } from './next-visibility.ts';
import { reportUnstableEffects } from './unstable-effects.ts';

/** The end of a claim. */
export interface Ending {
  /** Writes it in the row, under the claim's fence. @default a commit has written it, or the row keeps its lease */
  readonly write?: () => Promise<InboxRefusal | undefined>;
  /** Reports it, once it is written. */
  readonly report: () => MessageOutcome;
  /** Lists the message as FAILED, with its next attempt at this time, or as failed no longer. @default neither */
  readonly failedUntil?: number | 'never';
}

/** The table of endings: the end of a claim, by that of its handler's run. */
export function endingOf(claimed: ClaimedMessage, run: LeasedRun): Ending {
  const { inbox, clock, claim, effects } = claimed;
  const ended = Object.fromEntries(effects.ended);
  // Uncounted attempts follow the same schedule; otherwise a hanging provider would use up the receives in minutes.
  const uncounted = claim.attempt + Math.min(claim.unfinished, ALONE_FROM);
  switch (run.kind) {
    case 'committed':
      return processed(claimed);
    case 'returned': {
      const warning = receiptWarning(run.result);
      return {
        ...processed(claimed),
        write: async () => {
          const refusal = await inbox.complete(claim, run.result);
          if (warning !== undefined) claimed.telemetry.log.warn(warning);
          return refusal;
        },
      };
    }
    // An effect may still be running elsewhere, until it must have ended; or another event of the aggregate was applied. The message waits.
    case 'blocked': {
      const afterMs = untilMs(claimed, run.error.until);
      return {
        write: () => inbox.release(claim, clock.now() + afterMs, ended),
        report: () => {
          claimed.telemetry.count('MessagesLeased');
          return again(afterMs, run.error);
        },
      };
    }
    // The table was unreachable while the handler ran. If this cannot be recorded either, the next claim takes over.
    case 'outage': {
      const outcome = reportOutage(claimed, run.error);
      const failedUntil = clock.now() + outcome.afterMs;
      const write = () => inbox.release(claim, failedUntil, ended, run.error);
      return { write, report: () => outcome, failedUntil };
    }
    // The run ended because the time was up: retried like any failure, but counted as an attempt only if it ran alone.
    case 'cut-off': {
      if (claim.unfinished >= ALONE_FROM && claim.attempt >= claimed.config.maxAttempts)
        return rejection(claimed, attemptsSpent(claim.attempt, run.error));
      const afterMs = retryAfterMs(claimed, uncounted);
      const failedUntil = clock.now() + afterMs;
      const write = () => inbox.cutOff(claim, run.error, failedUntil, ended);
      return { write, report: () => reportFailed(claimed, afterMs, run.error), failedUntil };
    }
    // The handler is still running: its lease stays, and no worker retries until the function has certainly stopped.
    case 'out-of-time': {
      const error = outOfTime();
      const stoppedMs = untilMs(claimed, claim.endsBy + CLOCK_SKEW_MS);
      if (run.lostTimeToTable) {
        const { afterMs } = reportOutage(claimed, error);
        return { report: () => again(Math.max(stoppedMs, afterMs), error) };
      }
      logFailure(claimed, 'A handler ran out of time', error);
      const afterMs = Math.max(stoppedMs, retryAfterMs(claimed, uncounted));
      return { report: () => again(afterMs, error) };
    }
    case 'not-started':
      return rejection(claimed, run.error);
    case 'threw':
      return failure(claimed, run.error);
  }
}

/** The handler threw. */
function failure(claimed: ClaimedMessage, error: unknown): Ending {
  const { config, inbox, clock, claim, effects } = claimed;
  if (isMailroomError(error, 'ALREADY_PROCESSED'))
    return { ...processed(claimed, false), write: () => inbox.complete(claim, undefined) };
  if (isPoison(error)) return rejection(claimed, error);
  const ended = Object.fromEntries(effects.ended);
  const isLater = isMailroomError(error, 'RETRY_LATER');
  const cause = isLater ? (error.cause ?? error) : error;
  const asked = isLater ? askedWait(claimed, error) : undefined;
  if (asked !== undefined) {
    // A provider's rate limit says nothing about the message, so a wait that the handler asks for counts no attempt. It is bounded by
    // time, and by the receives of the queue.
    const failedUntil = clock.now() + asked.afterMs;
    const write = () => inbox.release(claim, failedUntil, ended, cause, asked.wait);
    return { write, report: () => reportFailed(claimed, asked.afterMs, cause, true), failedUntil };
  }
  if (claim.attempt >= config.maxAttempts) return rejection(claimed, attemptsSpent(claim.attempt, cause));
  const afterMs = retryAfterMs(claimed, claim.attempt, error);
  const failedUntil = clock.now() + afterMs;
  const write = () => inbox.fail(claim, cause, failedUntil, ended);
  return { write, report: () => reportFailed(claimed, afterMs, cause), failedUntil };
}

/** No attempt follows. */
function rejection(claimed: ClaimedMessage, error: unknown): Ending {
  const { inbox, claim, effects } = claimed;
  return {
    write: () => inbox.reject(claim, error, Object.fromEntries(effects.ended)),
    report: () => {
      reportEffectsOfRejected(claimed);
      return reportRejected(claimed, error);
    },
    failedUntil: 'never',
  };
}

/** @param wholeRun - true if the handler ran to its end */
function processed(claimed: ClaimedMessage, wholeRun = true): Ending {
  return {
    report: () => {
      if (wholeRun) reportUnstableEffects(claimed);
      return reportProcessed(claimed);
    },
    failedUntil: 'never',
  };
}
