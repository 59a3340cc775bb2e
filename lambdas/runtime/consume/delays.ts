import type { Clock } from '../base/clock.ts';
import { isMailroomError, type RetryLater } from '../base/errors.ts';
import {
  askedDelayMs,
  DELAY_MAX_MS,
  outageDelayMs,
  type RetrySchedule,
  retryDelayMs,
  suspectDelayMs,
  WAITS_MAX_MS,
} from '../base/retry-schedule.ts';
import type { Claim } from '../inbox/inbox.ts';
import { waitsWith } from '../inbox/past-attempts.ts';
import { fraction } from '../store/backoff.ts';
import type { RandomBytes } from '../store/event-id.ts';
import type { AskedWait } from '../store/inbox-row.ts';

/** The delays before a message of one consumer becomes visible again. They are rounded to whole seconds, as SQS counts, so that the row can record the exact time. */
export interface Delays {
  /** After a failed attempt; `RetryLater` overrides the schedule. */
  retryMs(attempt: number, error?: unknown): number;
  /**
   * The wait that a handler asked for, unless it counts as an attempt. It counts once the message has waited for a day, whatever the
   * number of its waits: then its attempts end it. A delay of 0 counts, too.
   */
  asked(claim: Claim, asked: RetryLater): { readonly afterMs: number; readonly wait: AskedWait } | undefined;
  /** While Mailroom cannot reach its table. @param receives - of the message so far */
  outageMs(receives: number): number;
  /** Until it may run alone: random, so that suspects do not meet again. @param receives - of the message so far */
  untilAloneMs(receives: number): number;
  /** Until the slot of a message whose limit has no token, at most for {@link DELAY_MAX_MS}: it keeps its slot if it comes before. */
  slotMs(time: number): number;
  /** Until one second after a given time, for a message that waits for it. */
  untilMs(time: number): number;
}

/** Makes the delays of a consumer. */
export function delaysOf(schedule: RetrySchedule, clock: Clock, random: RandomBytes): Delays {
  return {
    retryMs: (attempt, error) =>
      isMailroomError(error, 'RETRY_LATER')
        ? wholeSeconds(error.retryAfterMs)
        : wholeSeconds(retryDelayMs(attempt, schedule, fraction(random))),
    asked: ({ pastAttempts, message }, { retryAfterMs }) => {
      const now = clock.now();
      const wait = waitsWith(pastAttempts, now, message.sentAt);
      const afterMs = wholeSeconds(askedDelayMs(retryAfterMs, wait.times, fraction(random)));
      return retryAfterMs > 0 && now + afterMs <= wait.since + WAITS_MAX_MS ? { afterMs, wait } : undefined;
    },
    outageMs: (receives) => wholeSeconds(outageDelayMs(receives, fraction(random))),
    untilAloneMs: (receives) => wholeSeconds(suspectDelayMs(receives, fraction(random))),
    slotMs: (time) => Math.min(DELAY_MAX_MS, wholeSeconds(Math.max(1, time - clock.now()))),
    untilMs: (time) => wholeSeconds(Math.max(0, time - clock.now())) + 1_000,
  };
}

function wholeSeconds(ms: number): number {
  return Math.ceil(ms / 1_000) * 1_000;
}
