import { type Clock, nextTurn } from '../lambdas/runtime/base/clock.ts';

/** A {@link Clock} that only advances when a test advances it. */
export interface ManualClock extends Clock {
  /**
   * Advances the time. Sleepers wake in the order of their wake-up times, each at its own time, and run (and may sleep again)
   * before the next one wakes.
   *
   * @param ms - the advance in milliseconds
   */
  advance(ms: number): Promise<void>;
  /** Sets the time without waking sleepers; it may go backwards, like a corrected clock. @param now - epoch milliseconds */
  jumpTo(now: number): void;
  /** The current number of sleepers. */
  sleeping(): number;
}

interface Sleeper {
  readonly until: number;
  readonly wake: () => void;
}

/**
 * Creates a clock for tests, so that no test has to wait.
 *
 * @param start - epoch milliseconds @default 2026-01-01T00:00:00Z
 *
 * @example
 * ```ts
 * const clock = manualClock();
 * const slept = clock.sleep(1_000);
 * await clock.advance(1_000);
 * await slept;
 * ```
 */
export function manualClock(start = Date.UTC(2026, 0, 1)): ManualClock {
  let now = start;
  const sleepers = new Set<Sleeper>();

  function nextUntil(target: number): Sleeper | undefined {
    const due = [...sleepers].filter(({ until }) => until <= target);
    return due.toSorted((a, b) => a.until - b.until)[0];
  }

  return {
    now: () => now,
    sleep: (ms, signal) => {
      if (ms <= 0 || signal?.aborted) return nextTurn();
      return new Promise((resolve) => {
        const wake = () => {
          sleepers.delete(sleeper);
          signal?.removeEventListener('abort', wake);
          resolve();
        };
        const sleeper: Sleeper = { until: now + ms, wake };
        sleepers.add(sleeper);
        signal?.addEventListener('abort', wake, { once: true });
      });
    },
    advance: async (ms) => {
      const target = now + ms;
      await nextTurn();
      for (let sleeper = nextUntil(target); sleeper; sleeper = nextUntil(target)) {
        now = Math.max(now, sleeper.until);
        sleeper.wake();
        await nextTurn();
      }
      now = Math.max(now, target);
    },
    jumpTo: (time) => {
      now = time;
    },
    sleeping: () => sleepers.size,
  };
}
