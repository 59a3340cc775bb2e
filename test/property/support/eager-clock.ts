import type { Clock } from '../../../lambdas/runtime/base/clock.ts';

interface Sleeper {
  readonly until: number;
  readonly wake: () => void;
}

/**
 * A clock without waiting: as soon as nothing else can run, it is the time of the next sleeper. It refuses
 * to sleep for a time that is not a number, which a machine's clock would take for no time.
 *
 * @param start - epoch milliseconds @default 2026-01-01T00:00:00Z
 */
export function eagerClock(start = Date.UTC(2026, 0, 1)): Clock & { moveTo(time: number): void } {
  let now = start;
  let running = false;
  const sleepers = new Set<Sleeper>();

  function wakeNext(): void {
    const next = [...sleepers].toSorted((a, b) => a.until - b.until)[0];
    running = next !== undefined;
    if (next === undefined) return;
    now = Math.max(now, next.until);
    next.wake();
    setImmediate(wakeNext);
  }

  return {
    now: () => now,
    moveTo: (time) => {
      now = time;
    },
    sleep: async (ms, signal) => {
      if (Number.isNaN(ms)) throw new TypeError('Asked to sleep for NaN milliseconds');
      const until = signal?.aborted ? now : now + Math.max(0, ms);
      await new Promise<void>((resolve) => {
        const wake = () => {
          sleepers.delete(sleeper);
          signal?.removeEventListener('abort', wake);
          resolve();
        };
        const sleeper: Sleeper = { until, wake };
        sleepers.add(sleeper);
        signal?.addEventListener('abort', wake, { once: true });
        if (!running) setImmediate(wakeNext);
        running = true;
      });
    },
  };
}

/**
 * Waits until a promise settles, for as long as anything runs or sleeps on an eager clock.
 *
 * @throws when it never will
 */
export async function settled<T>(promise: Promise<T>): Promise<T> {
  let over = false;
  const watched = promise.finally(() => {
    over = true;
  });
  watched.catch(() => {});
  for (let turn = 0; turn < TURNS_MAX && !over; turn += 1) {
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
  if (!over) throw new Error('Still waiting, and nothing runs any more');
  return watched;
}

/** Each turn of the event loop wakes one sleeper: far more than any batch has. */
const TURNS_MAX = 20_000;
