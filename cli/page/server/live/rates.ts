import type { QueueDepth } from '../../../../lambdas/runtime/operations/queues.ts';
import type { QueueNow } from '../protocol.ts';

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

/** A depth is compared with that of this time ago, milliseconds. */
const TREND_OF_MS = 60_000;

/** The depths of one queue over the last minute. */
export interface QueueTrend {
  /** Adds a reading. @returns it with the direction in which the queue moves */
  add(depth: QueueDepth, now: number): QueueNow;
}

/**
 * Creates an empty trend. The messages that wait and those in flight are compared together: a message that fails moves between the
 * two, and leaves the queue only when it is processed or dead.
 */
export function createQueueTrend(): QueueTrend {
  let history: { readonly at: number; readonly messages: number }[] = [];
  return {
    add: ({ waiting, inFlight }, now) => {
      const messages = waiting + inFlight;
      const first = history.findLastIndex(({ at }) => at <= now - TREND_OF_MS);
      history = [...history.slice(Math.max(0, first)), { at: now, messages }];
      const before = history[0]?.messages ?? messages;
      const trend = messages < before ? 'falling' : messages > before ? 'rising' : 'level';
      return { queued: waiting, inFlight, trend };
    },
  };
}
