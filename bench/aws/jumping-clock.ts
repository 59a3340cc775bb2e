import type { Clock } from '../../lambdas/runtime/base/clock.ts';

/**
 * A clock on which a pause takes no time: it advances the clock and ends in the next turn. A pause that a signal can abort waits
 * for the signal, because no call here is slow enough for such a time-out or heartbeat to come first.
 *
 * @param start - epoch milliseconds
 */
export function jumpingClock(start: number): Clock {
  let now = start;
  return {
    now: () => now,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted === false) {
          signal.addEventListener('abort', () => resolve(), { once: true });
          return;
        }
        if (signal === undefined) now += Math.max(0, ms);
        setImmediate(resolve);
      }),
  };
}
