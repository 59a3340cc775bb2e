import { isMailroomError, type RetryLater } from '../base/errors.ts';
import {
  askedDelayMs,
  outageDelayMs,
  retryDelayMs,
  suspectDelayMs,
  WAITS_MAX_MS,
} from '../base/retry-schedule.ts';
import { waitsWith } from '../inbox/past-attempts.ts';
import type { AskedWait } from '../store/inbox-row.ts';
import { fraction } from '../store/retry.ts';
import type { ClaimedMessage, ConsumerContext } from './consumer-context.ts';

/**
 * The delay before a failed message becomes visible again; `RetryLater` overrides the schedule. Rounded to whole seconds, as
 * SQS counts, so that the row can record the exact time.
 */
export function retryAfterMs({ config, random }: ConsumerContext, attempt: number, error?: unknown): number {
  if (isMailroomError(error, 'RETRY_LATER')) return wholeSeconds(error.retryAfterMs);
  return wholeSeconds(retryDelayMs(attempt, config, fraction(random)));
}

/**
 * The wait that a handler asked for, unless it counts as an attempt. It counts once the message has waited for a day, whatever the
 * number of its waits: then its attempts end it. A delay of 0 counts, too.
 */
export function askedWait(
  { clock, random, claim }: ClaimedMessage,
  { retryAfterMs: askedMs }: RetryLater,
): { readonly afterMs: number; readonly wait: AskedWait } | undefined {
  const now = clock.now();
  const wait = waitsWith(claim.pastAttempts, now, claim.message.sentAt);
  const afterMs = wholeSeconds(askedDelayMs(askedMs, wait.times, fraction(random)));
  return askedMs > 0 && now + afterMs <= wait.since + WAITS_MAX_MS ? { afterMs, wait } : undefined;
}

/** The delay of a message while Mailroom cannot reach its table. @param receives - of the message so far */
export function afterOutageMs({ random }: Pick<ConsumerContext, 'random'>, receives: number): number {
  return wholeSeconds(outageDelayMs(receives, fraction(random)));
}

/** The delay of a message that must run alone: random, so that suspects do not meet again. @param receives - of the message so far */
export function untilAloneMs({ random }: Pick<ConsumerContext, 'random'>, receives: number): number {
  return wholeSeconds(suspectDelayMs(receives, fraction(random)));
}

/** Milliseconds until one second after a given time, for a message that waits for it. */
export function untilMs({ clock }: ConsumerContext, time: number): number {
  return wholeSeconds(Math.max(0, time - clock.now())) + 1_000;
}

function wholeSeconds(ms: number): number {
  return Math.ceil(ms / 1_000) * 1_000;
}
