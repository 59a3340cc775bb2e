import { pause } from './shop.ts';

/** Orders per second at the beginning, while no function has started yet, and at least. */
const RATE_MIN = 1;

const LOOK_EVERY_MS = 1_000;

/** With at most this many waiting, the rate rises by one. */
const FEW = 8;

/** With more than this waiting, the rate falls by a third. */
const MANY = 24;

/** A rate that follows what the machine carries. */
interface CarriedRate {
  /** Orders per second, now. */
  readonly perSecond: () => number;
  /** Ends the looks. Rejects with the error of a look that failed. */
  stop(): Promise<void>;
}

/**
 * Finds the rate that the machine carries, from its first seconds on: it rises while hardly any message waits, and falls when they pile up. Otherwise
 * every latency of a slow machine would be the time in a queue.
 *
 * @param waiting - the messages that a consumer could receive now
 * @param most - orders per second
 *
 * @example
 * ```ts
 * const rate = carriedRate(reader.waiting, 10);
 * rate.perSecond(); // 1
 * await rate.stop();
 * ```
 */
export function carriedRate(waiting: () => Promise<number>, most: number): CarriedRate {
  let perSecond = Math.min(RATE_MIN, most);
  let over = false;
  const looks = (async () => {
    for (; !over; await pause(LOOK_EVERY_MS))
      perSecond = Math.min(most, nextRate(perSecond, await waiting()));
  })();
  looks.catch(() => {}); // `stop` rejects with it
  return {
    perSecond: () => perSecond,
    stop: () => {
      over = true;
      return looks;
    },
  };
}

/**
 * The rate after a look.
 *
 * @param perSecond - the rate before it
 * @param waiting - the messages that a consumer could receive now
 *
 * @example
 * ```ts
 * nextRate(4, 0); // 5
 * ```
 */
export function nextRate(perSecond: number, waiting: number): number {
  if (waiting <= FEW) return perSecond + 1;
  return waiting > MANY ? Math.max(RATE_MIN, (perSecond * 2) / 3) : perSecond;
}
