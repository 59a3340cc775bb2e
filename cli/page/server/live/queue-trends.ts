import type { QueueDepth } from '../../../../lambdas/runtime/operations/queues.ts';
import type { QueueNow } from '../protocol.ts';

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
