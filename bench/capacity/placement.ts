import { type Demand, outboxUnits, spreadUnits } from './demand.ts';
import { PARTITION } from './quotas.ts';

/** How the writes of one table fall on its partitions. */
export interface Placement {
  readonly demand: Demand;
  readonly eventsPerSecond: number;
  readonly shards: number;
  readonly partitions: number;
}

/**
 * The share of a partition's units that counts as usable: arrivals are uneven within a second, and throttled commits are
 * tried again.
 */
const USABLE = 0.95;

/**
 * The share of throttled commits that a plan is made for: a quarter of the 1 % that is acceptable, because a plan must also
 * hold in minutes in which more keys than usual fall on one partition.
 */
const THROTTLED_SHARE_MAX = 0.0025;

/**
 * The share of commits that DynamoDB throttles at their first try, as expected from where keys fall.
 *
 * Every key of a minute (one for each shard) lies on one partition, by its hash: like balls thrown into bins. The rest of
 * the writes is spread over all. A partition that `k` keys fell on has to take
 *
 *     k × outbox units of one shard  +  its part of what is spread
 *
 * and what is above its limit is throttled, be it for the outbox row or for the domain row. The sum over all `k`, each
 * with its probability, is what a commit meets.
 */
export function throttledShare(placement: Placement): number {
  const { demand, eventsPerSecond, shards, partitions } = placement;
  const shardUnits = (eventsPerSecond / shards) * outboxUnits(demand);
  const spread = (eventsPerSecond / partitions) * spreadUnits(demand);
  const throttledOf = (keys: number) => {
    const units = keys * shardUnits + spread;
    return units === 0 ? 0 : Math.max(0, 1 - (PARTITION.writeUnits * USABLE) / units);
  };
  // The outbox row's partition has its own key and those of the other shards; the domain row's has those of any.
  const outbox = expected(shards - 1, 1 / partitions, (others) => throttledOf(others + 1));
  const domain = expected(shards, 1 / partitions, throttledOf);
  return 1 - (1 - outbox) * (1 - domain);
}

/** Whether so few commits are throttled that a plan may be made with it. */
export function carries(placement: Placement): boolean {
  return throttledShare(placement) <= THROTTLED_SHARE_MAX;
}

/** The most events a second that a table of so many shards and partitions carries. */
export function highestRate(placement: Omit<Placement, 'eventsPerSecond'>): number {
  return rateWhere((eventsPerSecond) => carries({ ...placement, eventsPerSecond }));
}

/** The highest rate for which something holds, to a thousandth; below it, it holds as well. */
export function rateWhere(holds: (eventsPerSecond: number) => boolean): number {
  let [low, high] = [0, 1];
  while (holds(high) && high < RATE_MAX) [low, high] = [high, high * 2];
  while (high - low > high / 1_000) {
    const middle = (low + high) / 2;
    if (holds(middle)) low = middle;
    else high = middle;
  }
  return low;
}

/** More than anybody asks for. */
const RATE_MAX = 1e8;

/** The expected value of `of(k)`, where `k` of `count` balls fall into a bin that each hits with probability `p`. */
function expected(count: number, p: number, of: (k: number) => number): number {
  if (p >= 1) return of(count);
  let probability = (1 - p) ** count;
  let sum = 0;
  for (let k = 0; k <= count; k += 1) {
    sum += probability * of(k);
    probability *= ((count - k) / (k + 1)) * (p / (1 - p));
  }
  return sum;
}
