import { setTimeout as delay } from 'node:timers/promises';

/**
 * The clock port: every time that Mailroom reads and every pause that it makes goes through here, so that
 * tests (and the in-memory parts in `cdk-mailroom/testing`) can own time.
 */
export interface Clock {
  /** The time now, epoch milliseconds. */
  now(): number;
  /**
   * Resolves after `ms` milliseconds, or at once when `signal` is aborted. It never rejects.
   *
   * @param ms - how long to wait, milliseconds; zero and below resolve on the next turn
   */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The end of the year 9999: sums of later times leave the range of `Date`, and their ISO text has another length. */
const LATEST_TIME_MS = 253_402_300_799_999;

/** Whether a value is a time in epoch milliseconds that can be computed with and shown: whole, and in the years 1970 to 9999. */
export function isTime(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= LATEST_TIME_MS;
}

/**
 * How far the clocks of two machines may differ, milliseconds. A time that another machine wrote has passed for certain only
 * this much later by one's own clock.
 */
export const CLOCK_SKEW_MS = 2_000;

/**
 * The clock of the machine.
 *
 * @example
 * ```ts
 * const outbox = createOutbox({ config, table, clock: systemClock });
 * ```
 */
export const systemClock: Clock = {
  now: () => Date.now(),
  sleep: async (ms, signal) => {
    await delay(Math.max(0, ms), undefined, { signal }).catch((error: unknown) => {
      if (!signal?.aborted) throw error;
    });
  },
};
