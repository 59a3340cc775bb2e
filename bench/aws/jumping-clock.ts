import type { Clock } from '../../lambdas/runtime/clock.ts';

/**
 * A clock on which a pause takes no time: it moves the clock and is over on the next turn. A pause that a signal can end
 * waits for that signal: nothing here takes so long that such a time-out, or a heartbeat, would be first.
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
