import { type CapacityBill, monthlyBill } from './bill.ts';
import { type Demand, demandOf } from './demand.ts';
import { type CapacityLimit, limitsOf } from './limits.ts';
import { consumerLoad, type MailroomPlan, SWEEP_SECONDS_MAX, streamLoad, sweepLoad } from './load.ts';
import { carries, throttledShare } from './placement.ts';
import { NEW_TABLE, PARTITION, SHARDS_MAX, SHARDS_MIN, TABLE } from './quotas.ts';

/** The target of a plan. */
export interface CapacityTarget {
  /** The monthly average. */
  readonly eventsPerSecond: number;
  /** The rate in the busiest seconds; everything except the bill is planned for it. @default the average */
  readonly peakEventsPerSecond?: number;
  /** The size of each event's payload (`data`) as JSON. @default 200 */
  readonly payloadBytes?: number;
  /** The number of consumers of each event. @default 1 */
  readonly consumers?: number;
  /**
   * The maximum write units per second of one table. Beyond it the plan uses several Mailrooms.
   *
   * @default 400,000: ten times DynamoDB's default quota
   */
  readonly tableWriteUnitsMax?: number;
}

/** The resources of a plan, per Mailroom and in total. All rates are those of the peak. */
export interface CapacityPlan {
  readonly target: Required<CapacityTarget>;
  readonly demand: Demand;
  /** The number of Mailrooms that share the events, each with its own table and bus. */
  readonly mailrooms: number;
  /** One Mailroom. */
  readonly mailroom: MailroomPlan;
  /** All limits, fullest first. */
  readonly limits: readonly CapacityLimit[];
  readonly bill: CapacityBill;
}

/** A plan uses this many times the minimum number of partitions, and then only as many shards as these need. */
const SPARE_PARTITIONS = 1.25;

/** The partitions of a new table. */
const PARTITIONS_MIN = NEW_TABLE.writeUnits / PARTITION.writeUnits;

/**
 * Plans one or more Mailrooms for a target: shards, partitions, stream, sweep, consumers, limits and the monthly bill.
 *
 * @example
 * ```ts
 * const { mailroom, limits } = planCapacity({ eventsPerSecond: 5_000, payloadBytes: 1_024, consumers: 3 });
 * mailroom.shards; // for the Mailroom's `shards`
 * limits[0]; // what is met first
 * ```
 */
export function planCapacity(target: CapacityTarget): CapacityPlan {
  const whole = {
    peakEventsPerSecond: target.eventsPerSecond,
    payloadBytes: 200,
    consumers: 1,
    tableWriteUnitsMax: 10 * TABLE.writeUnits,
    ...target,
  };
  const demand = demandOf(whole.payloadBytes, whole.consumers);
  const partitionsMax = Math.max(PARTITIONS_MIN, Math.floor(whole.tableWriteUnitsMax / PARTITION.writeUnits));
  const planFor = (mailrooms: number) =>
    planMailroom(demand, whole.peakEventsPerSecond / mailrooms, partitionsMax);
  const mailrooms = fewest(1, (count) => planFor(count) !== undefined);
  const mailroom = planFor(mailrooms) as MailroomPlan;
  return {
    target: whole,
    demand,
    mailrooms,
    mailroom,
    limits: limitsOf(mailroom, mailrooms, whole.tableWriteUnitsMax),
    bill: monthlyBill(planBilled(mailroom, whole.eventsPerSecond / mailrooms), mailrooms),
  };
}

/** One Mailroom for a rate; none if one table cannot carry it. */
function planMailroom(
  demand: Demand,
  eventsPerSecond: number,
  partitionsMax: number,
): MailroomPlan | undefined {
  const fits = (shards: number, partitions: number) =>
    carries({ demand, eventsPerSecond, shards, partitions });
  if (!fits(SHARDS_MAX, partitionsMax)) return undefined;
  const least = fewest(PARTITIONS_MIN, (count) => fits(SHARDS_MAX, count));
  const partitions = fits(SHARDS_MIN, PARTITIONS_MIN)
    ? PARTITIONS_MIN
    : Math.min(partitionsMax, Math.ceil(least * SPARE_PARTITIONS));
  let shards = SHARDS_MIN;
  while (shards < SHARDS_MAX && !fits(shards, partitions)) shards *= 2;
  const placement = { demand, eventsPerSecond, shards, partitions };
  const sweep = sweepLoad(placement);
  if (sweep.seconds > SWEEP_SECONDS_MAX) return undefined;
  return {
    ...placement,
    sweep,
    warmWriteUnits: partitions > PARTITIONS_MIN ? partitions * PARTITION.writeUnits : undefined,
    throttledShare: throttledShare(placement),
    stream: streamLoad(placement),
    consumer: consumerLoad(eventsPerSecond),
  };
}

/** The same Mailroom on an average day, which is what the bill is based on. */
function planBilled(mailroom: MailroomPlan, eventsPerSecond: number): MailroomPlan {
  const placement = { ...mailroom, eventsPerSecond };
  return {
    ...placement,
    stream: streamLoad(placement),
    sweep: sweepLoad(placement),
    consumer: consumerLoad(eventsPerSecond),
  };
}

/** The smallest whole number, starting from this one, for which a monotonic condition holds. */
function fewest(from: number, holds: (count: number) => boolean): number {
  if (holds(from)) return from;
  let [low, high] = [from, from * 2];
  while (!holds(high)) [low, high] = [high, high * 2];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle;
  }
  return high;
}
