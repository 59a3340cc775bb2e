import type { Clock } from '../lambdas/runtime/clock.ts';

/** A {@link Clock} that stands still until a test moves it. */
export interface ManualClock extends Clock {
  /**
   * Moves the time forward. Whoever sleeps is woken in the order of their times, each at its own time, and gets to
   * run (and to sleep again) before the next is woken.
   *
   * @param ms - how far, milliseconds
   */
  advance(ms: number): Promise<void>;
  /** Sets the time without waking anybody, also backwards: a clock that was put right. @param now - epoch milliseconds */
  jumpTo(now: number): void;
  /** How many sleep at this moment. */
  sleeping(): number;
}

interface Sleeper {
  readonly until: number;
  readonly wake: () => void;
}

/**
 * A clock for tests: no test needs to wait.
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
      if (ms <= 0 || signal?.aborted) return turn();
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
      await turn();
      for (let sleeper = nextUntil(target); sleeper; sleeper = nextUntil(target)) {
        now = Math.max(now, sleeper.until);
        sleeper.wake();
        await turn();
      }
      now = Math.max(now, target);
    },
    jumpTo: (time) => {
      now = time;
    },
    sleeping: () => sleepers.size,
  };
}

/** Lets everything run that can run now. */
function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
