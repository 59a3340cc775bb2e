import type { Clock } from './clock.ts';

/** The reason of an abort that no one reads: by default, each `abort` makes an error with a stack. */
const OVER = 'over';

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
