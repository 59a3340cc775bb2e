import { PUT_EVENTS_ENTRIES_MAX } from '../../lambdas/runtime/bus/event-bus.ts';
import { CONCURRENCY } from '../../lambdas/runtime/relay/relay.ts';
import { SWEEP_AGES_MINUTES } from '../../lambdas/runtime/relay/sweep-minutes.ts';
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
  /** The table's `warmThroughput`; absent where a new table is enough. */
  readonly warmWriteUnits: number | undefined;
  /** The share of commits that are throttled at their first try, as expected. */
  readonly throttledShare: number;
  readonly stream: StreamLoad;
  readonly sweep: SweepLoad;
  /** One of its consumers. */
  readonly consumer: ConsumerLoad;
}

/** What the functions of one Mailroom have to do. */
export interface StreamLoad {
  /** Invocations of the stream function a second. */
  readonly invocationsPerSecond: number;
  /** Events that one of them finds. */
  readonly eventsPerInvocation: number;
  /** How long it takes, milliseconds. */
  readonly invocationMs: number;
  /** Invocations at a time, on average. */
  readonly concurrency: number;
  /** Calls of PutEvents a second. */
  readonly putEventsPerSecond: number;
  /** The fewest batches of one stream shard at a time that keep up with the hottest partition. */
  readonly parallelizationFactor: number;
}

/** Records that the stream hands over at once, unless told otherwise (lib/outbox-relay.ts). */
const BATCH_SIZE = 100;

/**
 * What the stream function does. A stream has a shard for each partition of its table; Lambda asks each four times a second,
 * so that the more partitions there are, the fewer events an invocation finds.
 */
export function streamLoad({ demand, eventsPerSecond, shards, partitions }: Placement): StreamLoad {
  // Only partitions that a key of this minute fell on have new events.
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

/** How long the stream function takes for so many events: its share of a core, and the calls that it waits for. */
function relayMs(events: number): number {
  const [publishes, marks] = [
    Math.ceil(events / PUT_EVENTS_ENTRIES_MAX),
    Math.ceil(events / UPDATE_EACH_MAX),
  ];
  const cpuMs = events * EVENT_CPU_MS + (publishes + marks) * CALL_CPU_MS;
  const rounds = Math.ceil(publishes / CONCURRENCY) + Math.ceil(marks / CONCURRENCY);
  return (cpuMs * LAMBDA_MB_PER_CORE) / LAMBDA_MB + rounds * CALL_MS;
}

/** What a sweep has to read every minute. */
export interface SweepLoad {
  /** How long that takes. */
  readonly seconds: number;
  readonly readUnits: number;
}

/** How many shards a sweep reads at once (lambdas/runtime/relay/relay-sweep.ts). */
const SHARDS_AT_ONCE = 16;

/**
 * How long a pass may read: its function runs for 55 s (lib/outbox-relay.ts), of which 0.7 are for this, and it stops 10 s
 * before that (lambdas/runtime/relay/relay-sweep.ts). A pass that does not get through its minute begins with it again,
 * and so never gets on.
 */
export const SWEEP_SECONDS_MAX = 55 * 0.7 - 10;

/** The most bytes that one page of a query reads (DynamoDB API reference, Query). */
const PAGE_BYTES_MAX = 1024 * 1024;

/** Read units of a query that finds next to nothing, eventually consistent. */
const QUERY_UNITS_MIN = 0.5;

/** Queries of a pass for each shard beside those of its minutes: pointers to unsettled minutes, and to DEAD events. */
const POINTER_QUERIES = 2;

/**
 * What a pass reads: six minutes of every shard, some shards at once, page after page. A page takes as long as its partition
 * needs for it at 3,000 read units a second, and all of them together what the table's quota lets through.
 */
export function sweepLoad({ demand, eventsPerSecond, shards }: Placement): SweepLoad {
  const minutes = SWEEP_AGES_MINUTES.length;
  const minuteBytes = (60 * eventsPerSecond * demand.rowBytes) / shards;
  const minuteUnits = Math.max(QUERY_UNITS_MIN, minuteBytes / READ_UNIT_BYTES);
  const pages = Math.max(1, Math.ceil(minuteBytes / PAGE_BYTES_MAX));
  const minuteMs = Math.max(pages * CALL_MS, (minuteUnits / PARTITION.readUnits) * 1_000);
  const readMs = Math.ceil(shards / SHARDS_AT_ONCE) * (minutes * minuteMs + CALL_MS);
  const readUnits = shards * (minutes * minuteUnits + POINTER_QUERIES * QUERY_UNITS_MIN);
  // DEAD events are counted shard after shard.
  const seconds = Math.max(readMs / 1_000, readUnits / TABLE.readUnits) + (shards * CALL_MS) / 1_000;
  return { seconds, readUnits };
}

/** What one consumer's function does. */
export interface ConsumerLoad {
  readonly messagesPerInvocation: number;
  readonly invocationsPerSecond: number;
  /** Invocations at a time, on average. */
  readonly concurrency: number;
}

/** Messages of one receive (lib/timings.ts). */
const RECEIVE_MAX = 10;

/** What a consumer does: the five pollers that a mapping begins with share what comes, ten messages at most each time. */
export function consumerLoad(eventsPerSecond: number): ConsumerLoad {
  const seconds = CONSUMER_BATCH_MS / 1_000;
  const messagesPerInvocation = Math.min(
    RECEIVE_MAX,
    Math.max(1, (eventsPerSecond * seconds) / QUEUE_MAPPING_START),
  );
  const invocationsPerSecond = eventsPerSecond / messagesPerInvocation;
  return { messagesPerInvocation, invocationsPerSecond, concurrency: invocationsPerSecond * seconds };
}

/** How long rows stay, days: what is published (lib/outbox-relay.ts), and what is processed (lib/retentions.ts). */
const KEPT_DAYS = { outbox: 7, inbox: 35 } as const;

/** What lies in the table in the long run, of Mailroom's own rows, GB. */
export function storedGb(eventsPerSecond: number, { rowBytes, consumers }: Demand): number {
  const bytesDays =
    KEPT_DAYS.outbox * (rowBytes + STORED_ITEM_BYTES) +
    consumers * KEPT_DAYS.inbox * (INBOX_ROW_BYTES + STORED_ITEM_BYTES);
  return (eventsPerSecond * 86_400 * bytesDays) / GB_BYTES;
}
