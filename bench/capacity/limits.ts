import { consumerLoad, type MailroomPlan, SWEEP_SECONDS_MAX, sweepLoad } from './load.ts';
import { highestRate, rateWhere } from './placement.ts';
import {
  DELIVERIES_PER_SECOND,
  EVENT_BUSES,
  LAMBDA_CONCURRENCY,
  NEW_TABLE,
  PARTITION,
  PUT_EVENTS_PER_SECOND,
  QUEUE_MAPPING_CONCURRENCY,
  SHARDS_MAX,
  SHARDS_MIN,
  TABLE,
} from './quotas.ts';

/** A limit of a resource. */
export interface CapacityLimit {
  /** A short name. */
  readonly name: string;
  /** The unit. */
  readonly what: string;
  /** The total need of all events, for one Mailroom or the account. */
  readonly needed: number;
  /** The amount available by default. */
  readonly available: number;
  /** The remedy if it is not enough. */
  readonly remedy: string;
  /** The quota that this plan needs; absent if the plan has another remedy. */
  readonly quotaNeeded?: number;
}

/** Every limit for a number of Mailrooms, fullest first: that is the first one reached as events increase. */
export function limitsOf(mailroom: MailroomPlan, mailrooms: number, unitsMax: number): CapacityLimit[] {
  const limits = [...mailroomLimits(mailroom, mailrooms, unitsMax), ...accountLimits(mailroom, mailrooms)];
  return limits.sort((a, b) => fullness(b) - fullness(a));
}

/** The used share of a limit; above 1 it is exceeded. */
export function fullness({ needed, available }: CapacityLimit): number {
  return needed / available;
}

/** Limits of one Mailroom. */
function mailroomLimits(mailroom: MailroomPlan, mailrooms: number, unitsMax: number): CapacityLimit[] {
  const { demand, eventsPerSecond, partitions } = mailroom;
  const needed = eventsPerSecond * mailrooms;
  const ofTable = (shards: number, writeUnits: number) =>
    highestRate({ demand, shards, partitions: writeUnits / PARTITION.writeUnits });
  const swept = (rate: number) =>
    sweepLoad({ demand, eventsPerSecond: rate, shards: SHARDS_MAX, partitions }).seconds <= SWEEP_SECONDS_MAX;
  return [
    {
      name: 'new table',
      what: 'events/s, with 8 shards',
      needed,
      available: ofTable(SHARDS_MIN, NEW_TABLE.writeUnits),
      remedy: 'set `warmThroughput`, raise `shards`',
    },
    {
      name: 'table quota',
      what: 'events/s, with 256 shards',
      needed,
      available: ofTable(SHARDS_MAX, TABLE.writeUnits),
      remedy: 'raise the table-level write quota, or use several Mailrooms',
      quotaNeeded: partitions * PARTITION.writeUnits,
    },
    {
      name: 'table',
      what: `events/s, with 256 shards and ${unitsMax.toLocaleString('en-US')} write units/s`,
      needed,
      available: ofTable(SHARDS_MAX, unitsMax),
      remedy: 'use several Mailrooms',
    },
    {
      name: 'sweep',
      what: 'events/s that a pass can read in time',
      needed,
      available: rateWhere(swept),
      remedy: 'use several Mailrooms, or smaller payloads',
    },
    {
      name: 'queue',
      what: 'concurrent functions of one consumer',
      needed: consumerLoad(needed).concurrency,
      available: QUEUE_MAPPING_CONCURRENCY,
      remedy: 'make handlers faster, or use several Mailrooms',
    },
  ];
}

/** Account quotas per region. */
function accountLimits(mailroom: MailroomPlan, mailrooms: number): CapacityLimit[] {
  const { demand, eventsPerSecond, stream, consumer } = mailroom;
  const putEvents = mailrooms * stream.putEventsPerSecond;
  const deliveries = mailrooms * eventsPerSecond * demand.consumers;
  const functions = mailrooms * (stream.concurrency + demand.consumers * consumer.concurrency);
  return [
    {
      name: 'PutEvents',
      what: 'calls/s',
      needed: putEvents,
      available: PUT_EVENTS_PER_SECOND,
      remedy: "raise EventBridge's PutEvents quota, or use several accounts or regions",
      quotaNeeded: putEvents,
    },
    {
      name: 'bus invocations',
      what: 'deliveries/s',
      needed: deliveries,
      available: DELIVERIES_PER_SECOND,
      remedy: "raise EventBridge's invocations quota, or use several accounts or regions",
      quotaNeeded: deliveries,
    },
    {
      name: 'Lambda concurrency',
      what: 'concurrent functions',
      needed: functions,
      available: LAMBDA_CONCURRENCY,
      remedy: "raise Lambda's concurrency quota, or make handlers faster",
      quotaNeeded: functions,
    },
    {
      name: 'event buses',
      what: 'one per Mailroom',
      needed: mailrooms,
      available: EVENT_BUSES,
      remedy: "raise EventBridge's quota of buses, or use several accounts",
      quotaNeeded: mailrooms,
    },
  ];
}
