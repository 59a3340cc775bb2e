import { PUT_EVENTS_ENTRIES_MAX } from '../../lambdas/runtime/bus/event-bus.ts';
import { SWEEP_AGES_MINUTES } from '../../lambdas/runtime/relay/minutes-to-sweep.ts';
import { CONCURRENCY } from '../../lambdas/runtime/relay/relay-context.ts';
import { UPDATE_EACH_MAX } from '../../lambdas/runtime/store/table.ts';
import {
  CALL_CPU_MS,
  CALL_MS,
  CONSUMER_BATCH_MS,
  EVENT_CPU_MS,
  GB_BYTES,
  INBOX_ROW_BYTES,
  LAMBDA_MB,
  LAMBDA_MB_PER_CORE,
  STORED_ITEM_BYTES,
} from '../assumptions.ts';
import { type Demand, outboxUnits, READ_UNIT_BYTES } from './demand.ts';
import type { Placement } from './placement.ts';
import { PARTITION, QUEUE_MAPPING_START, STREAM_POLLS_PER_SECOND, TABLE } from './quotas.ts';

/** One Mailroom of a plan. */
export interface MailroomPlan extends Placement {
  /** The table's `warmThroughput`; absent if a new table is enough. */
  readonly warmWriteUnits: number | undefined;
  /** The expected share of commits that are throttled at their first attempt. */
  readonly throttledShare: number;
  readonly stream: StreamLoad;
  readonly sweep: SweepLoad;
  /** One consumer. */
  readonly consumer: ConsumerLoad;
}

/** The load on the functions of one Mailroom. */
export interface StreamLoad {
  /** Invocations of the stream function per second. */
  readonly invocationsPerSecond: number;
  /** Events per invocation. */
  readonly eventsPerInvocation: number;
  /** The duration of an invocation in milliseconds. */
  readonly invocationMs: number;
  /** The average number of concurrent invocations. */
  readonly concurrency: number;
  /** PutEvents calls per second. */
  readonly putEventsPerSecond: number;
  /** The minimum number of concurrent batches per stream shard that keeps up with the hottest partition. */
  readonly parallelizationFactor: number;
}

/** The default number of records per stream batch (lib/mailroom/outbox-relay.ts). */
const BATCH_SIZE = 100;

/**
 * The load on the stream function. A stream has one shard per partition of its table, and Lambda polls each four times a second:
 * the more partitions there are, the fewer events an invocation finds.
 */
export function streamLoad({ demand, eventsPerSecond, shards, partitions }: Placement): StreamLoad {
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
    concurrency: (invocationsPerSecond * invocationMs) / 1_000,
    putEventsPerSecond: invocationsPerSecond * Math.ceil(eventsPerInvocation / PUT_EVENTS_ENTRIES_MAX),
    parallelizationFactor: Math.ceil((hottest * relayMs(BATCH_SIZE)) / 1_000 / BATCH_SIZE),
  };
}

/** The stream function's duration for a number of events: CPU on its share of a core, and the calls that it waits for. */
function relayMs(events: number): number {
  const [publishes, marks] = [
    Math.ceil(events / PUT_EVENTS_ENTRIES_MAX),
    Math.ceil(events / UPDATE_EACH_MAX),
  ];
  const cpuMs = events * EVENT_CPU_MS + (publishes + marks) * CALL_CPU_MS;
  const rounds = Math.ceil(publishes / CONCURRENCY) + Math.ceil(marks / CONCURRENCY);
  return (cpuMs * LAMBDA_MB_PER_CORE) / LAMBDA_MB + rounds * CALL_MS;
}

/** The reads of a sweep every minute. */
export interface SweepLoad {
  /** The duration of that. */
  readonly seconds: number;
  readonly readUnits: number;
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

/** Read units of an almost empty, eventually consistent query. */
const QUERY_UNITS_MIN = 0.5;

/** Queries per shard and pass in addition to those of its minutes: pointers to unsettled minutes, and to DEAD events. */
const POINTER_QUERIES = 2;

/**
 * The reads of a pass: six minutes of every shard, several shards concurrently, page after page. The time of a page is limited by
 * its partition at 3,000 read units per second, and that of all pages together by the table's quota.
 */
export function sweepLoad({ demand, eventsPerSecond, shards }: Placement): SweepLoad {
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

/** The load on one consumer's function. */
export interface ConsumerLoad {
  readonly messagesPerInvocation: number;
  readonly invocationsPerSecond: number;
  /** The average number of concurrent invocations. */
  readonly concurrency: number;
}

/** Messages per receive (lib/checks/timings.ts). */
const RECEIVE_MAX = 10;

/** The load of a consumer: the five initial pollers of a mapping share the messages, at most ten at a time. */
export function consumerLoad(eventsPerSecond: number): ConsumerLoad {
  const seconds = CONSUMER_BATCH_MS / 1_000;
  const messagesPerInvocation = Math.min(
    RECEIVE_MAX,
    Math.max(1, (eventsPerSecond * seconds) / QUEUE_MAPPING_START),
  );
  const invocationsPerSecond = eventsPerSecond / messagesPerInvocation;
  return { messagesPerInvocation, invocationsPerSecond, concurrency: invocationsPerSecond * seconds };
}

/** The retention of rows in days: published ones (lib/mailroom/outbox-relay.ts), and processed ones (lib/checks/retentions.ts). */
const KEPT_DAYS = { outbox: 7, inbox: 35 } as const;

/** The long-term size of Mailroom's own rows in the table, in GB. */
export function storedGb(eventsPerSecond: number, { rowBytes, consumers }: Demand): number {
  const bytesDays =
    KEPT_DAYS.outbox * (rowBytes + STORED_ITEM_BYTES) +
    consumers * KEPT_DAYS.inbox * (INBOX_ROW_BYTES + STORED_ITEM_BYTES);
  return (eventsPerSecond * 86_400 * bytesDays) / GB_BYTES;
}
