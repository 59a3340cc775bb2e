import type { Clock } from '../../../lambdas/runtime/base/clock.ts';

/**
 * Returns a reading that was made before if it is young enough, and makes it otherwise. Concurrent callers share one reading, and
 * one that fails is not kept.
 *
 * @param name - identifies the reading
 * @param forMs - the time for which it is kept, counted from its start, milliseconds
 */
export type Keep = <T>(name: string, read: () => Promise<T>, forMs: (value: T) => number) => Promise<T>;

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
export const keepNothing: Keep = (_name, read) => read();

/**
 * Creates a cache of readings.
 *
 * @example
 * ```ts
 * const { keep } = createKeptReadings(clock);
 * const wiring = await keep('wiring', () => runChecks(checks), () => 60_000);
 * ```
 */
export function createKeptReadings(clock: Clock): KeptReadings {
  let known = new Map<string, Kept>();

  async function make<T>(name: string, read: () => Promise<T>, forMs: (value: T) => number): Promise<T> {
    const readings = known;
    const startedAt = clock.now();
    const value = read();
    const kept: Kept = { value, until: Number.POSITIVE_INFINITY };
    readings.set(name, kept);
    try {
      kept.until = startedAt + forMs(await value);
    } catch (error) {
      readings.delete(name);
      throw error;
    }
    return value;
  }

  return {
    keep: (name, read, forMs) => {
      const now = clock.now();
      for (const [other, { until }] of known) if (until <= now) known.delete(other);
      const found = known.get(name);
      // A name stands for one type of reading.
      return (found?.value as ReturnType<typeof read> | undefined) ?? make(name, read, forMs);
    },
    forget: () => {
      known = new Map();
    },
  };
}
