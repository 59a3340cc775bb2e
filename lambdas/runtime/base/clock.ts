// The timers of Node as they are when this module is loaded: a test that fakes the global ones would otherwise wait for Mailroom forever.
const { setTimeout, clearTimeout, setImmediate } = globalThis;

/**
 * The clock port: Mailroom reads the time and pauses only through this interface, so that tests (and the in-memory parts in
 * `cdk-mailroom/testing`) can control time.
 */
export interface Clock {
  /** The current time, epoch milliseconds. */
  now(): number;
  /**
   * Resolves after `ms` milliseconds, or immediately when `signal` is aborted. It never rejects.
   *
   * @param ms - the pause in milliseconds; zero and negative values resolve on the next turn of the event loop
   */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The end of the year 9999. Beyond it, sums can leave the range of `Date`, and ISO text has a different length. */
const LATEST_TIME_MS = 253_402_300_799_999;

/** Returns true for a time in epoch milliseconds that is safe to compute with and display: whole, in the years 1970 to 9999. */
export function isTime(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= LATEST_TIME_MS;
}

/** Returns a time of a row as ISO 8601 text; a number that is not a time, unchanged. */
export function timeText(time: number): string {
  return isTime(time) ? new Date(time).toISOString() : String(time);
}

/**
 * The maximum difference between the clocks of two machines, milliseconds. A time that another machine wrote has certainly
 * passed only when the local clock is this far beyond it.
 */
export const CLOCK_SKEW_MS = 2_000;

/**
 * The machine's own clock.
 *
 * @example
 * ```ts
 * const outbox = createOutbox({ config, table, clock: systemClock });
 * ```
 */
export const systemClock: Clock = {
  now: () => Date.now(),
  // Not the timer of node:timers/promises, which makes an error with a stack for each sleep that is cut short.
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) {
        resolve();
        return;
      }
      // A timer of zero would wait for a millisecond.
      if (ms <= 0) {
        setImmediate(resolve);
        return;
      }
      const end = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      signal?.addEventListener('abort', end);
    }),
};

/** Resolves on the next turn of the event loop, when everything that can run now has run. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** The reason of an abort that no one reads: by default, each `abort` makes an error with a stack. */
export const OVER = 'over';

/**
 * Waits for work until a deadline. The work is not cancelled at the deadline: it continues, and its result is ignored.
 *
 * @param ms - the time to wait in milliseconds; zero and negative values wait until the next turn of the event loop
 * @param timeIsUp - called at the deadline unless the work has ended; it may throw. The work still wins while this is pending
 * @returns the result of the work, or of `timeIsUp`
 *
 * @example
 * ```ts
 * await withDeadline(clock, 2_000, table.write(write), () => undefined);
 * ```
 */
export async function withDeadline<T, U>(
  clock: Clock,
  ms: number,
  work: Promise<T>,
  timeIsUp: () => U | Promise<U>,
): Promise<T | U> {
  const over = new AbortController();
  const deadline = clock
    .sleep(ms, over.signal)
    .then((): Promise<T | U> | U => (over.signal.aborted ? work : timeIsUp()));
  try {
    return await Promise.race([work, deadline]);
  } finally {
    over.abort(OVER);
  }
}
