import type { Clock } from '../../../lambdas/runtime/base/clock.ts';

/**
 * Returns a reading that was made before if it is young enough, and makes it otherwise. Concurrent callers share one reading, and
 * one that fails is not kept.
 *
 * @param name - identifies the reading
 * @param forMs - the time for which it is kept, counted from its start
 */
export type Keep = <T>(name: string, forMs: KeptFor<T>, read: () => Promise<T>) => Promise<T>;

/** A time in milliseconds, which may depend on the reading. */
type KeptFor<T> = number | ((value: T) => number);

/** Readings that are kept for a while. */
export interface KeptReadings {
  readonly keep: Keep;
  /** Drops all of them: a reading that is still being made is not used again. */
  forget(): void;
}

interface Kept {
  readonly value: Promise<unknown>;
  /** Epoch milliseconds; infinite until the reading is made. */
  until: number;
}

/** Makes a reading every time: the `keep` of a command that runs once. */
export const keepNothing: Keep = (_name, _forMs, read) => read();

/**
 * Creates a cache of readings.
 *
 * @example
 * ```ts
 * const { keep } = createKeptReadings(clock);
 * const wiring = await keep('wiring', 60_000, () => runChecks(checks));
 * ```
 */
export function createKeptReadings(clock: Clock): KeptReadings {
  let known = new Map<string, Kept>();

  async function make<T>(name: string, forMs: KeptFor<T>, read: () => Promise<T>): Promise<T> {
    const readings = known;
    const startedAt = clock.now();
    const value = read();
    const kept: Kept = { value, until: Number.POSITIVE_INFINITY };
    readings.set(name, kept);
    try {
      const read = await value;
      kept.until = startedAt + (typeof forMs === 'number' ? forMs : forMs(read));
    } catch (error) {
      readings.delete(name);
      throw error;
    }
    return value;
  }

  return {
    keep: (name, forMs, read) => {
      const now = clock.now();
      for (const [other, { until }] of known) if (until <= now) known.delete(other);
      const found = known.get(name);
      // A name stands for one type of reading.
      return (found?.value as ReturnType<typeof read> | undefined) ?? make(name, forMs, read);
    },
    forget: () => {
      known = new Map();
    },
  };
}
