import { outboxUnits, type Placement, spreadUnits } from './load.ts';
import { PARTITION } from './quotas.ts';

/** The usable share of a partition's units: arrivals are uneven within a second, and throttled commits are retried. */
const USABLE = 0.95;

/**
 * The share of throttled commits that a plan aims for: a quarter of the acceptable 1 %, because a plan must also hold in minutes
 * in which unusually many keys fall on one partition.
 */
const THROTTLED_SHARE_MAX = 0.0025;

/**
 * The expected share of commits that DynamoDB throttles at their first attempt, from the distribution of keys.
 *
 * Every key of a minute (one per shard) is on one partition, by its hash, like balls thrown into bins. The other writes are
 * spread evenly. A partition with `k` keys has to take
 *
 *     k × outbox units of one shard  +  its part of what is spread
 *
 * and the excess over its limit is throttled, for the outbox row as for the domain row. A commit meets the sum over all `k`,
 * weighted by probability.
 */
export function throttledShare(placement: Placement): number {
  const { demand, eventsPerSecond, shards, partitions } = placement;
  const shardUnits = (eventsPerSecond / shards) * outboxUnits(demand);
  const spread = (eventsPerSecond / partitions) * spreadUnits(demand);
  const throttledOf = (keys: number) => {
    const units = keys * shardUnits + spread;
    return units === 0 ? 0 : Math.max(0, 1 - (PARTITION.writeUnits * USABLE) / units);
  };
  // The outbox row's partition has its own key and others by chance; the domain row's has only keys by chance.
  const outbox = expected(shards - 1, 1 / partitions, (others) => throttledOf(others + 1));
  const domain = expected(shards, 1 / partitions, throttledOf);
  return 1 - (1 - outbox) * (1 - domain);
}

/** Returns true if few enough commits are throttled for a plan. */
export function carries(placement: Placement): boolean {
  return throttledShare(placement) <= THROTTLED_SHARE_MAX;
}

/** The maximum number of events per second that a table with these shards and partitions carries. */
export function highestRate(placement: Omit<Placement, 'eventsPerSecond'>): number {
  return rateWhere((eventsPerSecond) => carries({ ...placement, eventsPerSecond }));
}

/** The highest rate for which a monotonic condition holds, to a thousandth. */
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

/** An upper bound beyond any realistic rate. */
const RATE_MAX = 1e8;

/** The expected value of `of(k)`, if `k` of `count` balls fall into a bin that each hits with probability `p`. */
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
