import { setTimeout as delay } from 'node:timers/promises';
import { errorMessage } from '../lambdas/runtime/base/errors.ts';

/** Longer than any wait that a healthy deployment imposes: a visibility timeout after a crash, a sweep, a metric. */
const DEADLINE_MS = 600_000;

/** Each look makes a few calls that are paid for. */
const LOOK_EVERY_MS = 1_000;

/** Reads until something has happened. */
export type Until = <T>(what: string, look: () => Promise<T | undefined | false>) => Promise<T>;

/**
 * Makes a reader that looks until the answer is neither `undefined` nor `false`.
 *
 * @param signal - ends the wait when it is aborted
 * @param timing - the longest wait (10 minutes by default) and the time between two looks (1 second), in milliseconds
 * @throws an error that names what did not happen; the reason of `signal`
 *
 * @example
 * ```ts
 * const until = untilOf(signal);
 * await until('the queue is empty', async () => (await depth()) === 0);
 * ```
 */
export function untilOf(
  signal: AbortSignal,
  { deadlineMs = DEADLINE_MS, lookEveryMs = LOOK_EVERY_MS } = {},
): Until {
  return async (what, look) => {
    let lastError: unknown;
    for (const end = Date.now() + deadlineMs; ; ) {
      signal.throwIfAborted();
      try {
        const seen = await look();
        if (seen !== undefined && seen !== false) return seen;
        lastError = undefined;
      } catch (error) {
        lastError = error; // AWS may throttle; the deadline decides
      }
      if (Date.now() >= end) {
        const why = lastError === undefined ? '' : ` The last error: ${errorMessage(lastError)}`;
        throw new Error(`Not seen within ${deadlineMs / 60_000} minutes: ${what}.${why}`);
      }
      await delay(lookEveryMs, undefined, { signal });
    }
  };
}
