/** The length of an interval, milliseconds. */
const INTERVAL_MS = 2_000;

/** The number of intervals that are counted. */
const INTERVALS = 30;

/** The time that {@link Rates} cover, milliseconds. */
export const RATES_OF_MS = INTERVAL_MS * INTERVALS;

/** Counts what happened in each of the last 30 intervals of 2 seconds. */
export interface Rates {
  /** @param at - when it happened, epoch milliseconds */
  add(at: number): void;
  /** The number per second in each whole interval before `now`, oldest first. */
  perS(now: number): number[];
}

/** Creates a count of nothing. */
export function createRates(): Rates {
  const counts = new Map<number, number>();
  return {
    add: (at) => {
      const interval = Math.floor(at / INTERVAL_MS);
      counts.set(interval, (counts.get(interval) ?? 0) + 1);
    },
    perS: (now) => {
      const current = Math.floor(now / INTERVAL_MS);
      for (const interval of counts.keys()) if (interval < current - INTERVALS) counts.delete(interval);
      return Array.from(
        { length: INTERVALS },
        (_, index) => ((counts.get(current - INTERVALS + index) ?? 0) * 1_000) / INTERVAL_MS,
      );
    },
  };
}
