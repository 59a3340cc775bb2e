import { PUT_EVENTS_ENTRIES_MAX } from '../../lambdas/runtime/bus/event-bus.ts';
import { SWEEP_AGES_MINUTES } from '../../lambdas/runtime/relay/minutes-to-sweep.ts';
import { CONCURRENCY } from '../../lambdas/runtime/relay/relay-context.ts';
import { mintEventId, outboxKeyOf } from '../../lambdas/runtime/store/event-id.ts';
import { itemBytes } from '../../lambdas/runtime/store/item-size.ts';
import type { OutboxRow } from '../../lambdas/runtime/store/outbox-row.ts';
import { expiresAt } from '../../lambdas/runtime/store/row-expiry.ts';
import { SCHEMA } from '../../lambdas/runtime/store/row-schema.ts';
import { UPDATE_EACH_MAX } from '../../lambdas/runtime/store/table.ts';
import {
  CALL_CPU_MS,
  CALL_MS,
  CONSUMER_BATCH_MS,
  EVENT_CPU_MS,
  LAMBDA_MB,
  LAMBDA_MB_PER_CORE,
  STREAM_POLLS_PER_SECOND,
} from '../assumptions.ts';
import { writeUnits } from '../aws/billing.ts';
import { PARTITION, QUEUE_MAPPING_START, TABLE } from './quotas.ts';

/** The demand of one event on the table. */
export interface EventDemand {
  /** The size of a published outbox row in bytes. */
  readonly rowBytes: number;
  /** Write units of the put of the outbox row, in its transaction. */
  readonly putUnits: number;
  readonly markUnits: number;
  /** Write units of the domain row that is written in the same transaction. */
  readonly domainUnits: number;
  /** Write units of one consumer: its inbox row, and the domain row that its handler writes. */
  readonly consumerUnits: number;
  readonly consumers: number;
}

/** The distribution of one table's writes over its partitions. */
export interface Placement {
  readonly demand: EventDemand;
  readonly eventsPerSecond: number;
  readonly shards: number;
  readonly partitions: number;
}

/** One Mailroom of a plan, at its peak rate. */
export interface MailroomPlan extends Placement {
  readonly sweep: ReturnType<typeof sweepLoad>;
  /** The table's `warmThroughput`; absent if a new table is enough. */
  readonly warmWriteUnits: number | undefined;
  /** The expected share of commits that are throttled at their first attempt. */
  readonly throttledShare: number;
  readonly stream: ReturnType<typeof streamLoad>;
  /** One consumer. */
  readonly consumer: ReturnType<typeof consumerLoad>;
}

/** Rows of less than 1 KB: the domain rows and the inbox row. */
const SMALL = { before: 0, after: 1 };

/**
 * Computes an event's demand on the table from the shape of the outbox row and DynamoDB's rules. Assumes a domain row under 1 KB,
 * and handlers that claim and commit (one unit more than transactional ones).
 *
 * @param payloadBytes - the size of the event's payload (`data`) as JSON
 */
export function demandOf(payloadBytes: number, consumers: number): EventDemand {
  const pending = outboxRow(payloadBytes);
  const status = {
    status: 'PUBLISHED',
    publishedAt: AT + 1_000,
    publishedBy: 'stream',
    expiresAt: expiresAt(AT, 7),
  };
  const [before, after] = [itemBytes({ ...pending }), itemBytes({ ...pending, ...status })];
  return {
    rowBytes: after,
    putUnits: writeUnits({ before: 0, after: before }, true),
    markUnits: writeUnits({ before, after }),
    domainUnits: writeUnits(SMALL, true),
    consumerUnits: writeUnits(SMALL) + 2 * writeUnits(SMALL, true),
    consumers,
  };
}

/** Write units on the outbox row's own key, which all events of a minute and shard share. */
export function outboxUnits({ putUnits, markUnits }: EventDemand): number {
  return putUnits + markUnits;
}

/** Write units on keys that belong to a single event. */
export function spreadUnits({ domainUnits, consumerUnits, consumers }: EventDemand): number {
  return domainUnits + consumers * consumerUnits;
}

const AT = Date.UTC(2026, 10, 21);

/** A row as the outbox writes it for an order's event, of a payload that does not compress. Only its size counts. */
function outboxRow(payloadBytes: number): OutboxRow {
  const eventId = mintEventId(AT, 1);
  const type = 'OrderPlaced';
  const ids = {
    eventId,
    type,
    version: 1,
    aggregateType: 'Order',
    aggregateId: eventId,
    correlationId: eventId,
  };
  const data = 'x'.repeat(Math.max(0, payloadBytes - 2));
  return {
    ...outboxKeyOf(eventId),
    schema: SCHEMA,
    status: 'PENDING',
    leaseUntil: AT + 30_000,
    attempts: 0,
    source: 'orders',
    type,
    envelope: JSON.stringify({ ...ids, occurredAt: AT, data }),
  };
}

/** The default number of records per stream batch (lib/mailroom/outbox-relay.ts). */
const BATCH_SIZE = 100;

/**
 * The load on the stream function. A stream has one shard per partition of its table, and Lambda polls each four times a second:
 * the more partitions there are, the fewer events an invocation finds.
 */
export function streamLoad({ demand, eventsPerSecond, shards, partitions }: Placement) {
  // Only partitions with a key of this minute have new events.
  const active = Math.min(partitions * (1 - (1 - 1 / partitions) ** shards), eventsPerSecond || 1);
  const found = eventsPerSecond / active / STREAM_POLLS_PER_SECOND;
  const eventsPerInvocation = Math.min(BATCH_SIZE, Math.max(1, found));
  const invocationsPerSecond = eventsPerSecond / eventsPerInvocation;
  const invocationMs = relayMs(eventsPerInvocation);
  const hottest = PARTITION.writeUnits / outboxUnits(demand);
  return {
    invocationsPerSecond,
    eventsPerInvocation,
    invocationMs,
    /** The average number of concurrent invocations. */
    concurrency: (invocationsPerSecond * invocationMs) / 1_000,
    putEventsPerSecond: invocationsPerSecond * Math.ceil(eventsPerInvocation / PUT_EVENTS_ENTRIES_MAX),
    /** The minimum number of concurrent batches per stream shard that keeps up with the hottest partition. */
    parallelizationFactor: Math.ceil((hottest * relayMs(BATCH_SIZE)) / 1_000 / BATCH_SIZE),
  };
}

/** The stream function's duration for a number of events: CPU on its share of a core, and the calls that it waits for. */
function relayMs(events: number): number {
  const publishes = Math.ceil(events / PUT_EVENTS_ENTRIES_MAX);
  const marks = Math.ceil(events / UPDATE_EACH_MAX);
  const cpuMs = events * EVENT_CPU_MS + (publishes + marks) * CALL_CPU_MS;
  const rounds = Math.ceil(publishes / CONCURRENCY) + Math.ceil(marks / CONCURRENCY);
  return (cpuMs * LAMBDA_MB_PER_CORE) / LAMBDA_MB + rounds * CALL_MS;
}

/** The number of shards that a sweep reads concurrently (lambdas/runtime/relay/relay-sweep.ts). */
const SHARDS_AT_ONCE = 16;

/**
 * The maximum reading time of a pass: its function runs for 55 s (lib/mailroom/outbox-relay.ts), of which 70 % are for reading,
 * and it stops 10 s before the end (lambdas/runtime/relay/relay-sweep.ts). A pass that does not finish its minute starts with the
 * same one again, and so never gets past it.
 */
export const SWEEP_SECONDS_MAX = 55 * 0.7 - 10;

/** The maximum number of bytes that one page of a query reads (DynamoDB API reference, Query). */
const PAGE_BYTES_MAX = 1024 * 1024;

/** The bytes of one read unit, and the units of an almost empty query, eventually consistent (DynamoDB guide, "Read and write operations"). */
const READ_UNIT_BYTES = 8_192;
const QUERY_UNITS_MIN = 0.5;

/** Queries per shard and pass in addition to those of its minutes: pointers to unsettled minutes, and to DEAD events. */
const POINTER_QUERIES = 2;

/**
 * The reads of a pass every minute: six minutes of every shard, several shards concurrently, page after page. The time of a page
 * is limited by its partition at 3,000 read units per second, and that of all pages together by the table's quota.
 */
export function sweepLoad({ demand, eventsPerSecond, shards }: Placement) {
  const minutes = SWEEP_AGES_MINUTES.length;
  const minuteBytes = (60 * eventsPerSecond * demand.rowBytes) / shards;
  const minuteUnits = Math.max(QUERY_UNITS_MIN, minuteBytes / READ_UNIT_BYTES);
  const pages = Math.max(1, Math.ceil(minuteBytes / PAGE_BYTES_MAX));
  const minuteMs = Math.max(pages * CALL_MS, (minuteUnits / PARTITION.readUnits) * 1_000);
  const readMs = Math.ceil(shards / SHARDS_AT_ONCE) * (minutes * minuteMs + CALL_MS);
  const readUnits = shards * (minutes * minuteUnits + POINTER_QUERIES * QUERY_UNITS_MIN);
  // DEAD events are counted one shard at a time.
  const seconds = Math.max(readMs / 1_000, readUnits / TABLE.readUnits) + (shards * CALL_MS) / 1_000;
  return { seconds, readUnits };
}

/** Messages per receive (lib/checks/timings.ts). */
const RECEIVE_MAX = 10;

/** The load of one consumer: the five initial pollers of a mapping share the messages, at most ten at a time. */
export function consumerLoad(eventsPerSecond: number) {
  const seconds = CONSUMER_BATCH_MS / 1_000;
  const shared = (eventsPerSecond * seconds) / QUEUE_MAPPING_START;
  const messagesPerInvocation = Math.min(RECEIVE_MAX, Math.max(1, shared));
  const invocationsPerSecond = eventsPerSecond / messagesPerInvocation;
  return { messagesPerInvocation, invocationsPerSecond, concurrency: invocationsPerSecond * seconds };
}
