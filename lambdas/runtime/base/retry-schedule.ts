/**
 * Retry delays. There are two schedules, because there are two kinds of failure: the handler fails, which counts as an attempt,
 * or Mailroom cannot reach its own table, which does not.
 */

/** The delays between the attempts of a failing handler. */
export interface RetrySchedule {
  /** The maximum delay before the second attempt, milliseconds. */
  readonly retryFirstMs: number;
  /** The maximum delay between two attempts, milliseconds. */
  readonly retryLongestMs: number;
}

/** The factor between consecutive delays: four retries take up to 3 minutes, ten attempts 35 to 72 minutes. */
const RETRY_GROWTH = 4;

/** The shortest delay as a share of the longest: half of it is jitter, so that messages that fail together do not return together. */
const RETRY_JITTER = 0.5;

/** The first delay in an outage, milliseconds: long enough for throttling to end. */
const OUTAGE_FIRST_MS = 60_000;

/** The maximum delay in an outage, milliseconds. */
const OUTAGE_LONGEST_MS = 900_000;

/** The range of delays for a message that must run alone, milliseconds; it doubles with every fourth receive. */
const SUSPECT_FIRST_MS = 30_000;
const SUSPECT_DOUBLES_AFTER = 4;

const OUTAGE_GROWTH = 2;

/** Little jitter: each receive in an outage is used up, so each delay must cover as much of the outage as possible. */
const OUTAGE_JITTER = 0.2;

/**
 * The maximum delay of a schedule or a `RetryLater`, milliseconds: 11 hours. SQS hides a message for at most 12 hours from its
 * receive (ChangeMessageVisibility), and the function may already have used 15 minutes of them.
 */
export const DELAY_MAX_MS = 11 * 3_600_000;

/**
 * The time during which a wait that a handler asks for (`RetryLater`) counts no attempt, from the first one, milliseconds: a day, and then
 * the attempts may take days, too. With all attempts after it the message stays within its queue's retention.
 */
export const WAITS_MAX_MS = 24 * 3_600_000;

/** The number of waits that are exactly as long as a handler asks for. Later ones are at least those of an outage: each uses up a receive. */
const WAITS_AS_ASKED = 10;

/**
 * Returns the delay of a wait that a handler asks for.
 *
 * @param waits - the number of waits so far, from 1
 * @param share - the share of the jitter to use, 0 (none) to 1 (all)
 * @returns milliseconds
 */
export function askedDelayMs(askedMs: number, waits: number, share: number): number {
  return waits <= WAITS_AS_ASKED ? askedMs : Math.max(askedMs, outageDelayMs(waits - WAITS_AS_ASKED, share));
}

/**
 * Returns the delay after a failed attempt.
 *
 * @param attempt - the failed attempt, from 1
 * @param share - the share of the jitter to use, 0 (none) to 1 (all)
 * @returns milliseconds
 */
export function retryDelayMs(attempt: number, schedule: RetrySchedule, share: number): number {
  const { retryFirstMs, retryLongestMs } = schedule;
  const longest = grown(attempt, retryFirstMs, RETRY_GROWTH, retryLongestMs);
  return longest * (1 - RETRY_JITTER * share);
}

/**
 * Returns the delay after a receive that could not reach the table.
 *
 * @param receives - the number of receives so far, from 1
 * @param share - the share of the jitter to use, 0 (none) to 1 (all)
 * @returns milliseconds
 */
export function outageDelayMs(receives: number, share: number): number {
  return grown(receives, OUTAGE_FIRST_MS, OUTAGE_GROWTH, OUTAGE_LONGEST_MS) * (1 - OUTAGE_JITTER * share);
}

/**
 * Returns the delay of a message that must run alone and cannot do so now. The delay is random, and its range grows with the
 * number of receives, so that a few pollers can serve hundreds of such messages within their receives.
 *
 * @param receives - the number of receives so far, from 1
 * @param share - the position within the range, 0 to 1
 * @returns milliseconds
 */
export function suspectDelayMs(receives: number, share: number): number {
  const widthMs = Math.min(OUTAGE_LONGEST_MS, SUSPECT_FIRST_MS * 2 ** (receives / SUSPECT_DOUBLES_AFTER));
  return 1_000 + (widthMs - 1_000) * share;
}

function grown(step: number, firstMs: number, growth: number, longestMs: number): number {
  return Math.min(longestMs, firstMs * growth ** Math.min(step - 1, 30));
}
