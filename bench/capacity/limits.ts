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

/** A limit of one Mailroom, or of the account. */
export interface CapacityLimit {
  readonly name: string;
  /** The unit. */
  readonly what: string;
  /** The total need of all events. */
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
  const quota = (name: string, what: string, remedy: string, needed: number, available: number) => {
    return { name, what, needed, available, remedy, quotaNeeded: needed };
  };
  const elsewhere = 'or use several accounts or regions';
  const putEvents = mailrooms * stream.putEventsPerSecond;
  const bus = `raise EventBridge's PutEvents quota, ${elsewhere}`;
  const deliveries = mailrooms * eventsPerSecond * demand.consumers;
  const rules = `raise EventBridge's invocations quota, ${elsewhere}`;
  const functions = mailrooms * (stream.concurrency + demand.consumers * consumer.concurrency);
  const lambda = "raise Lambda's concurrency quota, or make handlers faster";
  const accounts = "raise EventBridge's quota of buses, or use several accounts";
  return [
    quota('PutEvents', 'calls/s', bus, putEvents, PUT_EVENTS_PER_SECOND),
    quota('bus invocations', 'deliveries/s', rules, deliveries, DELIVERIES_PER_SECOND),
    quota('Lambda concurrency', 'concurrent functions', lambda, functions, LAMBDA_CONCURRENCY),
    quota('event buses', 'one per Mailroom', accounts, mailrooms, EVENT_BUSES),
  ];
}
