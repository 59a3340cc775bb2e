/**
 * When a message is shown again. Two schedules, because two things go wrong: the handler fails, which counts an attempt, or
 * Mailroom cannot reach its own table, which counts none.
 */

/** How long to wait between the attempts of a handler that fails. */
export interface RetrySchedule {
  /** The longest delay before the second attempt, milliseconds. */
  readonly retryFirstMs: number;
  /** The longest delay between two attempts, milliseconds. */
  readonly retryLongestMs: number;
}

/** Each delay is this many times the one before: four retries within 3 minutes, ten attempts within 35 to 72. */
const RETRY_GROWTH = 4;

/** The shortest delay as a share of the longest one: half of it is jitter, so that what failed together does not return together. */
const RETRY_JITTER = 0.5;

/** The first delay of an outage, milliseconds: long enough for a throttle to pass. */
const OUTAGE_FIRST_MS = 60_000;

/** The longest delay of an outage, milliseconds. */
const OUTAGE_LONGEST_MS = 900_000;

/** The range of delays of a message that must run alone, milliseconds; it doubles with every fourth receive. */
const SUSPECT_FIRST_MS = 30_000;
const SUSPECT_DOUBLES_AFTER = 4;

const OUTAGE_GROWTH = 2;

/** Little jitter: every receive of an outage is spent, so each must cover as much of it as it can. */
const OUTAGE_JITTER = 0.2;

/**
 * The longest delay that a schedule or a handler may ask for, milliseconds: 11 hours. SQS hides a message for at most 12 hours
 * from its receive (ChangeMessageVisibility), of which the function may have used 15 minutes.
 */
export const DELAY_MAX_MS = 11 * 3_600_000;

/**
 * The delay after a failed attempt.
 *
 * @param attempt - the attempt that failed, from 1
 * @param share - how much of the jitter is used, 0 (none) to 1 (all)
 * @returns milliseconds
 */
export function retryDelayMs(attempt: number, schedule: RetrySchedule, share: number): number {
  const { retryFirstMs, retryLongestMs } = schedule;
  const longest = grown(attempt, Math.min(retryFirstMs, retryLongestMs), RETRY_GROWTH, retryLongestMs);
  return longest * (1 - RETRY_JITTER * share);
}

/**
 * The delay after a receive that could not reach the table.
 *
 * @param receives - how often the message has been received, from 1
 * @param share - how much of the jitter is used, 0 (none) to 1 (all)
 * @returns milliseconds
 */
export function outageDelayMs(receives: number, share: number): number {
  return grown(receives, OUTAGE_FIRST_MS, OUTAGE_GROWTH, OUTAGE_LONGEST_MS) * (1 - OUTAGE_JITTER * share);
}

/**
 * The delay of a message that must run alone and cannot now. Chance spreads those that wait; the more often they have waited,
 * the wider, so that a few pollers can serve hundreds of them within their receives.
 *
 * @param receives - how often the message has been received, from 1
 * @param share - where in the range the delay falls, 0 to 1
 * @returns milliseconds
 */
export function suspectDelayMs(receives: number, share: number): number {
  const widthMs = Math.min(OUTAGE_LONGEST_MS, SUSPECT_FIRST_MS * 2 ** (receives / SUSPECT_DOUBLES_AFTER));
  return 1_000 + (widthMs - 1_000) * share;
}

/** The shortest time from the first attempt to the last one, milliseconds. */
export function retrySpanMs(attempts: number, schedule: RetrySchedule): number {
  let spanMs = 0;
  for (let attempt = 1; attempt < attempts; attempt += 1) spanMs += retryDelayMs(attempt, schedule, 1);
  return spanMs;
}

function grown(step: number, firstMs: number, growth: number, longestMs: number): number {
  return Math.min(longestMs, firstMs * growth ** Math.min(step - 1, 30));
}
