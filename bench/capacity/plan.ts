import { SQS_REQUEST_BYTES } from '../alternatives/queue-delivery.ts';
import {
  GB_BYTES,
  INBOX_ROW_BYTES,
  LAMBDA_MB,
  LOG_BYTES_PER_INVOCATION,
  MINUTES_PER_MONTH,
  PRICES,
  STORED_ITEM_BYTES,
} from '../assumptions.ts';
import { limitsOf } from './limits.ts';
import {
  consumerLoad,
  demandOf,
  type EventDemand,
  type MailroomPlan,
  outboxUnits,
  type Placement,
  SWEEP_SECONDS_MAX,
  spreadUnits,
  streamLoad,
  sweepLoad,
} from './load.ts';
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
  /** The maximum write units per second of one table; beyond it the plan uses several Mailrooms. @default ten times the quota */
  readonly tableWriteUnitsMax?: number;
}

export type CapacityPlan = ReturnType<typeof planCapacity>;

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
export function planCapacity(target: CapacityTarget) {
  const whole: Required<CapacityTarget> = {
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
  // The bill is that of an average day.
  const billed = withLoads({ ...mailroom, eventsPerSecond: whole.eventsPerSecond / mailrooms });
  return {
    target: whole,
    demand,
    /** The number of Mailrooms that share the events, each with its own table and bus. */
    mailrooms,
    mailroom,
    /** All limits, fullest first. */
    limits: limitsOf(mailroom, mailrooms, whole.tableWriteUnitsMax),
    bill: monthlyBill(billed, mailrooms),
  };
}

/** One Mailroom for a rate; none if one table cannot carry it. */
function planMailroom(
  demand: EventDemand,
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
  const plan = withLoads({ demand, eventsPerSecond, shards, partitions });
  return plan.sweep.seconds > SWEEP_SECONDS_MAX ? undefined : plan;
}

function withLoads(placement: Placement): MailroomPlan {
  const { eventsPerSecond, partitions } = placement;
  return {
    ...placement,
    sweep: sweepLoad(placement),
    warmWriteUnits: partitions > PARTITIONS_MIN ? partitions * PARTITION.writeUnits : undefined,
    throttledShare: throttledShare(placement),
    stream: streamLoad(placement),
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

/** The retention of rows in days: published ones (lib/mailroom/outbox-relay.ts), and processed ones (lib/checks/retentions.ts). */
const KEPT_DAYS = { outbox: 7, inbox: 35 } as const;

const SECONDS_PER_MONTH = MINUTES_PER_MONTH * 60;

/**
 * US dollars per month of 30 days for a number of Mailrooms, without the producers' functions, permanent domain rows, alarms, and
 * the charge for raising warm throughput.
 */
function monthlyBill({ demand, eventsPerSecond, stream, sweep, consumer }: MailroomPlan, mailrooms: number) {
  const millions = (eventsPerSecond * mailrooms * SECONDS_PER_MONTH) / 1e6;
  const gb = LAMBDA_MB / 1_024;
  const functionsPerSecond =
    functionUsd(stream.invocationsPerSecond, stream.concurrency * gb) +
    demand.consumers * functionUsd(consumer.invocationsPerSecond, consumer.concurrency * gb) +
    functionUsd(1 / 60, (sweep.seconds / 60) * gb);
  const storedBytesDays =
    KEPT_DAYS.outbox * (demand.rowBytes + STORED_ITEM_BYTES) +
    demand.consumers * KEPT_DAYS.inbox * (INBOX_ROW_BYTES + STORED_ITEM_BYTES);
  const storedGb = (eventsPerSecond * mailrooms * 86_400 * storedBytesDays) / GB_BYTES;
  // A message is sent and received in a batch, per started 64 KB, and deleted.
  const { messagesPerInvocation } = consumer;
  const received = Math.ceil((messagesPerInvocation * demand.rowBytes) / SQS_REQUEST_BYTES);
  const queueRequests = 1 + (received + 1) / messagesPerInvocation;
  const parts = {
    writes: millions * (outboxUnits(demand) + spreadUnits(demand)) * PRICES.writeUnitsPerMillion,
    reads: (mailrooms * sweep.readUnits * MINUTES_PER_MONTH * PRICES.readUnitsPerMillion) / 1e6,
    storage: storedGb * (PRICES.storagePerGbMonth + PRICES.recoveryPerGbMonth),
    bus: millions * PRICES.busEventsPerMillion,
    queues: millions * demand.consumers * queueRequests * PRICES.queueRequestsPerMillion,
    /** Including logs. */
    functions: mailrooms * functionsPerSecond * SECONDS_PER_MONTH,
  };
  const total = Object.values(parts).reduce((sum, usd) => sum + usd, 0);
  return { ...parts, total, perMillionEvents: total / millions };
}

/** The cost of one second of a function. */
function functionUsd(invocations: number, gbSeconds: number): number {
  return (
    (invocations * PRICES.invocationsPerMillion) / 1e6 +
    gbSeconds * PRICES.lambdaGbSecond +
    (invocations * LOG_BYTES_PER_INVOCATION * PRICES.logsPerGb) / GB_BYTES
  );
}
