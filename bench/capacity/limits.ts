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

/** Something that ends somewhere. */
export interface CapacityLimit {
  /** In a word or two. */
  readonly name: string;
  /** What is counted. */
  readonly what: string;
  /** What all events together would need, of one Mailroom or of the account. */
  readonly needed: number;
  /** How much there is unless something is done. */
  readonly available: number;
  /** What to do where it is not enough. */
  readonly remedy: string;
  /** To what the quota must be raised for this plan; absent where the plan has another remedy. */
  readonly quotaNeeded?: number;
}

/** Every limit in the way of so many Mailrooms, fullest first: that is the one which is met first as events become more. */
export function limitsOf(mailroom: MailroomPlan, mailrooms: number, unitsMax: number): CapacityLimit[] {
  const limits = [...mailroomLimits(mailroom, mailrooms, unitsMax), ...accountLimits(mailroom, mailrooms)];
  return limits.sort((a, b) => fullness(b) - fullness(a));
}

/** How much of a limit is used: above 1 it is passed. */
export function fullness({ needed, available }: CapacityLimit): number {
  return needed / available;
}

/** Where one Mailroom ends. */
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

/** Where the quotas of an account in a region end. */
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
