import { marshall } from '@aws-sdk/util-dynamodb';
import type { DynamoDBRecord } from 'aws-lambda';
import { z } from 'zod/mini';
import { fixedRandom } from '../../bench/alternatives/workload.ts';
import {
  BUS_DELIVERY_MS,
  CALL_MS,
  CONSUMER_BATCH_MS,
  QUEUE_POLL_MS,
  STREAM_POLLS_PER_SECOND,
} from '../../bench/assumptions.ts';
import { QUEUE_MAPPING_START } from '../../bench/capacity/quotas.ts';
import { MINUTE_MS } from '../../lambdas/runtime/base/units.ts';
import { type Handler, leased, transactional } from '../../lambdas/runtime/consume/handler.ts';
import { defineEvent } from '../../lambdas/runtime/events/event.ts';
import { createRelayStream } from '../../lambdas/runtime/relay/relay-stream.ts';
import { createRelaySweep } from '../../lambdas/runtime/relay/relay-sweep.ts';
import { createConsumer } from '../../lambdas/runtime/sources/sqs/consumer.ts';
import { createOutbox } from '../../lambdas/runtime/store/dynamo/outbox.ts';
import { outboxKeyOf } from '../../lambdas/runtime/store/event-id.ts';
import { inboxKey } from '../../lambdas/runtime/store/keys.ts';
import type { Item, Table } from '../../lambdas/runtime/store/table.ts';
import { relayConfig } from '../../testing/default-config.ts';
import {
  consumerConfig,
  lambdaContext,
  type ManualClock,
  type MemoryBus,
  type MemoryTable,
  manualClock,
  memoryBus,
  memoryQueue,
  memoryTable,
  memoryTelemetry,
  producerConfig,
  type QueueHandler,
} from '../../testing/index.ts';

/** The duration of a burst, milliseconds. */
export const BURST_MS = 5 * MINUTE_MS;

/** The visibility timeout of a consumer's queue, as the constructs set it, milliseconds. */
export const VISIBILITY_MS = consumerConfig().visibilityTimeoutMs;

/** A simulation ends after this long, also if messages are left, milliseconds. */
const ENDS_MS = 20 * MINUTE_MS;

/** The default `batchSize` of the stream relay and of a consumer. */
const STREAM_BATCH = 100;
const CONSUMER_BATCH = 10;

/** The timeouts of the functions as the constructs set them, milliseconds. */
const FUNCTION_TIMEOUT_MS = 30_000;
const SWEEP_TIMEOUT_MS = 55_000;

/** With failures, one in this many of each goes wrong. Primes, so that they do not coincide. */
const FAILURES = { streamBatches: 5, busCalls: 13, busEntries: 17, deliveries: 11, charges: 19, results: 37 };

/** Orders placed at regular intervals. */
export interface BurstPlan {
  readonly orders: number;
  /** Publish from the stream, too. Without it, the sweep publishes every event. */
  readonly stream: boolean;
  /** The sweep's setting, milliseconds. @default a minute */
  readonly sweepEveryMs?: number;
  /** The time from the start of a minute to the sweep's invocation, milliseconds. @default half a minute */
  readonly sweepPhaseMs?: number;
  /** Stream batches, calls, deliveries, charges and results fail or repeat: see {@link FAILURES}. @default false */
  readonly failures?: boolean;
}

/** The results of a burst. All times are in simulated milliseconds. */
export interface BurstReport {
  /** From the commit to the first publish of each event, in ascending order. */
  readonly publishMs: readonly number[];
  /** From the commit until a consumer has processed the message, for each message, in ascending order. */
  readonly processMs: readonly number[];
  /** From the last commit to the last event's first publish, and until the last message was processed. */
  readonly lastPublishedMs: number;
  readonly lastProcessedMs: number;
  /** Events that were never published. */
  readonly lost: number;
  /** Publishes beyond the first of each event. */
  readonly republished: number;
  /** Messages that a consumer did not apply exactly once, of two consumers. */
  readonly notOnce: number;
  /** Charges of the bank, and the calls to it: it honors the idempotency key. */
  readonly charges: number;
  readonly bankCalls: number;
  /** Messages that a consumer found processed. */
  readonly duplicates: number;
  /** The sweep's invocations that published. */
  readonly passes: readonly { readonly published: number; readonly ms: number }[];
}

const OrderPlaced = defineEvent({
  source: 'orders',
  type: 'OrderPlaced',
  version: 1,
  aggregateType: 'Order',
  schema: z.object({ order: z.int() }),
});

/** The consumers: one transactional, one leased with an effect outside DynamoDB. */
const CONSUMERS = ['inventory', 'payments'] as const;

/**
 * Places orders for five minutes and runs everything until all is settled: the real outbox, relays and consumers on one manual clock. A call,
 * a poll, a delivery and a handler take the time that bench/assumptions.ts states, and a queue keeps to the five functions with which Lambda
 * starts. So no figure depends on the machine.
 */
export async function simulateBurst(plan: BurstPlan): Promise<BurstReport> {
  const { orders, failures = false } = plan;
  const clock = manualClock();
  const memory = memoryTable({ clock });
  const nth = (every: number) => {
    let count = 0;
    return () => failures && ++count % every === 0;
  };
  const parts: Parts = { clock, memory, random: fixedRandom(), telemetry: memoryTelemetry(), nth };
  const table = slowTable(memory, clock);
  const bus = slowBus(parts);
  const bank = createBank(parts);
  const queues = CONSUMERS.map((name) => startConsumer({ ...parts, table, bus }, name, bank.charge));
  const records: DynamoDBRecord[] = [];
  if (plan.stream) void runStream({ ...parts, table, bus }, records);
  const passes: { published: number; ms: number }[] = [];
  void runSweep({ ...parts, table, bus }, plan, passes);

  const startedAt = clock.now();
  const commits = placeOrders({ ...parts, table }, orders, records);
  const isSettled = () =>
    parts.telemetry.counted('MessagesProcessed') >= orders * CONSUMERS.length &&
    queues.every((queue) => queue.messages().length === 0);
  while (clock.now() < startedAt + ENDS_MS && !isSettled()) await clock.advance(1_000);
  return { ...reportOf(parts, bus, await commits), ...bank.counts(), passes: passes.filter(isBusy) };
}

const isBusy = ({ published }: { readonly published: number }) => published > 0;

interface Parts {
  readonly clock: ManualClock;
  readonly memory: MemoryTable;
  readonly random: ReturnType<typeof fixedRandom>;
  readonly telemetry: ReturnType<typeof memoryTelemetry>;
  /** Returns a counter that answers true for each nth call, if failures are simulated. */
  readonly nth: (every: number) => () => boolean;
}

interface TableParts extends Parts {
  readonly table: Table;
}

interface RelayParts extends TableParts {
  readonly bus: MemoryBus;
}

/** A table whose every call takes as long as one in a region. */
function slowTable(memory: MemoryTable, clock: ManualClock): Table {
  return new Proxy<Table>(memory, {
    get: (target, name) => {
      const call: unknown = Reflect.get(target, name);
      if (typeof call !== 'function') return call;
      return async (...args: unknown[]) => {
        await clock.sleep(CALL_MS);
        return Reflect.apply(call, target, args);
      };
    },
  });
}

/** A bus with the latency of EventBridge. With failures it loses responses and throttles entries. */
function slowBus({ clock, nth }: Parts): MemoryBus {
  const losesResponse = nth(FAILURES.busCalls);
  const throttles = nth(FAILURES.busEntries);
  const bus = memoryBus({
    clock,
    failCall: () => (losesResponse() ? { error: new Error('ECONNRESET'), published: true } : undefined),
    failEntry: () => (throttles() ? { code: 'ThrottlingException', message: 'Rate exceeded' } : undefined),
  });
  return {
    ...bus,
    put: async (...args) => {
      await clock.sleep(CALL_MS);
      return bus.put(...args);
    },
  };
}

/** A bank that honors idempotency keys. With failures it refuses some calls. */
function createBank({ clock, nth }: Parts) {
  const refuses = nth(FAILURES.charges);
  const charged = new Set<string>();
  let bankCalls = 0;
  return {
    charge: async (idempotencyKey: string): Promise<void> => {
      bankCalls += 1;
      await clock.sleep(CONSUMER_BATCH_MS);
      if (refuses()) throw new Error('The bank answered 503');
      charged.add(idempotencyKey);
    },
    counts: () => ({ charges: charged.size, bankCalls }),
  };
}

/** The row that counts how often a consumer applied an order. */
const appliedKey = (consumer: string, order: number) => ({ PK: `ORDER#${order}`, SK: `APPLIED#${consumer}` });

function applied(consumer: string, order: number) {
  return {
    Update: {
      Key: appliedKey(consumer, order),
      UpdateExpression: 'ADD applied :one',
      ExpressionAttributeValues: { ':one': 1 },
    },
  };
}

/** Subscribes a consumer, whose functions start when messages become visible. */
function startConsumer(
  { clock, nth, bus, ...parts }: RelayParts,
  name: (typeof CONSUMERS)[number],
  charge: (idempotencyKey: string) => Promise<void>,
) {
  const handlers: Record<typeof name, Handler> = {
    inventory: transactional(OrderPlaced, async ({ data }) => ({ writes: [applied(name, data.order)] })),
    payments: leased(OrderPlaced, async ({ data }, ctx) => {
      await ctx.once('charge', charge);
      await ctx.commit({ writes: [applied(name, data.order)] });
    }),
  };
  const queue = memoryQueue({ clock, visibilityTimeoutMs: VISIBILITY_MS });
  const config = consumerConfig({ service: name, consumer: name });
  const consume = createConsumer({ ...parts, clock, config, queue, handlers: [handlers[name]] });
  const losesResult = nth(FAILURES.results);
  const handle: QueueHandler = async (event, context) => {
    await clock.sleep(CALL_MS);
    const response = await consume(event, context);
    if (losesResult()) throw new Error('The function was stopped before it returned');
    return response;
  };
  const repeats = nth(FAILURES.deliveries);
  const { wake, run } = functionsOf(clock, queue, handle);
  bus.routeTo({
    send: (body) => {
      for (let copies = repeats() ? 2 : 1; copies > 0; copies -= 1)
        void clock.sleep(BUS_DELIVERY_MS + QUEUE_POLL_MS).then(() => {
          queue.send(body);
          wake();
        });
    },
  });
  void run();
  return queue;
}

/** Starts a function for each batch of visible messages, five at a time. */
function functionsOf(clock: ManualClock, queue: ReturnType<typeof memoryQueue>, handle: QueueHandler) {
  let busy = 0;
  let idle = new AbortController();
  const wake = (): void => idle.abort();
  const run = async (): Promise<void> => {
    for (;;) {
      const now = clock.now();
      const times = queue.messages().map(({ visibleAt }) => visibleAt);
      const batches = Math.ceil(times.filter((visibleAt) => visibleAt <= now).length / CONSUMER_BATCH);
      for (let starts = Math.min(batches, QUEUE_MAPPING_START - busy); starts > 0; starts -= 1) {
        busy += 1;
        const context = lambdaContext({ clock, timeoutMs: FUNCTION_TIMEOUT_MS });
        void queue.deliver(handle, CONSUMER_BATCH, context).finally(() => {
          busy -= 1;
          wake();
        });
      }
      idle = new AbortController();
      const nextVisible = Math.min(now + MINUTE_MS, ...times.filter((visibleAt) => visibleAt > now));
      await clock.sleep(nextVisible - now, idle.signal);
      // The receive, which takes what arrives meanwhile, too.
      await clock.sleep(CALL_MS);
    }
  };
  return { wake, run };
}

/** Polls the stream. With failures, the mapping discards some batches. */
async function runStream({ clock, nth, ...parts }: RelayParts, records: DynamoDBRecord[]): Promise<void> {
  const relay = createRelayStream({ ...parts, clock, config: relayConfig() });
  const discards = nth(FAILURES.streamBatches);
  for (;;) {
    await clock.sleep(1_000 / STREAM_POLLS_PER_SECOND);
    const Records = records.splice(0, STREAM_BATCH);
    if (Records.length === 0 || discards()) continue;
    await clock.sleep(CALL_MS);
    const { batchItemFailures } = await relay({ Records }, lambdaContext({ clock }));
    const failed = new Set(batchItemFailures.map(({ itemIdentifier }) => itemIdentifier));
    const first = Records.findIndex(({ dynamodb }) => failed.has(dynamodb?.SequenceNumber ?? ''));
    // The mapping delivers again from the first failure on.
    if (first >= 0) records.unshift(...Records.slice(first));
  }
}

async function runSweep(
  { clock, ...parts }: RelayParts,
  { sweepEveryMs = MINUTE_MS, sweepPhaseMs = MINUTE_MS / 2 }: BurstPlan,
  passes: { published: number; ms: number }[],
): Promise<void> {
  const sweep = createRelaySweep({ ...parts, clock, config: relayConfig({ sweepEveryMs }) });
  await clock.sleep(sweepPhaseMs);
  for (;;) {
    const from = clock.now();
    const { published } = await sweep({}, lambdaContext({ clock, timeoutMs: SWEEP_TIMEOUT_MS }));
    passes.push({ published, ms: clock.now() - from });
    await clock.sleep(from + MINUTE_MS - clock.now());
  }
}

/** Commits an event per order, at regular intervals. @returns the time of each commit, by event id */
async function placeOrders(
  { clock, memory, ...parts }: TableParts,
  orders: number,
  records: DynamoDBRecord[],
): Promise<ReadonlyMap<string, number>> {
  const outbox = createOutbox({ ...parts, clock, config: producerConfig({ service: 'orders' }) });
  const commits = new Map<string, number>();
  const place = async (order: number): Promise<void> => {
    const key = { PK: `ORDER#${order}`, SK: 'ORDER' };
    const events = [OrderPlaced.create({ aggregateId: String(order), data: { order } })];
    const [event] = await outbox.commit({ writes: [{ Put: { Item: key } }], events });
    const eventId = event?.eventId ?? '';
    commits.set(eventId, clock.now());
    const row = memory.item(outboxKeyOf(eventId));
    if (row) records.push(insertOf(row, commits.size, clock.now()));
  };
  const placed: Promise<void>[] = [];
  for (let order = 0; order < orders; order += 1) {
    placed.push(place(order));
    await clock.sleep(BURST_MS / orders);
  }
  await Promise.all(placed);
  return commits;
}

function insertOf(row: Item, number: number, now: number): DynamoDBRecord {
  const NewImage = marshall(row, { removeUndefinedValues: true });
  return {
    eventName: 'INSERT',
    dynamodb: {
      NewImage: NewImage as never,
      SequenceNumber: String(number),
      ApproximateCreationDateTime: Math.floor(now / 1_000),
    },
  };
}

function reportOf({ memory, telemetry }: Parts, bus: MemoryBus, commits: ReadonlyMap<string, number>) {
  const firsts = new Map<string, number>();
  const published = bus.published();
  for (const { detail, publishedAt } of published) {
    const { eventId } = JSON.parse(detail) as { eventId: string };
    if (!firsts.has(eventId)) firsts.set(eventId, publishedAt);
  }
  const processed: { readonly at: number; readonly ms: number }[] = [];
  for (const [eventId, committedAt] of commits)
    for (const consumer of CONSUMERS) {
      const row = memory.item(inboxKey(consumer, eventId));
      if (row?.status !== 'PROCESSED') continue;
      processed.push({ at: Number(row.processedAt), ms: Number(row.processedAt) - committedAt });
    }
  const rows = memory.items().filter(({ SK }) => String(SK).startsWith('APPLIED#'));
  const lastCommit = Math.max(...commits.values());
  const ascending = (times: readonly number[]) => times.toSorted((a, b) => a - b);
  return {
    publishMs: ascending([...firsts].map(([eventId, at]) => at - (commits.get(eventId) ?? NaN))),
    processMs: ascending(processed.map(({ ms }) => ms)),
    lastPublishedMs: Math.max(...firsts.values()) - lastCommit,
    lastProcessedMs: Math.max(...processed.map(({ at }) => at)) - lastCommit,
    lost: commits.size - firsts.size,
    republished: published.length - firsts.size,
    notOnce: commits.size * CONSUMERS.length - rows.filter((row) => row.applied === 1).length,
    duplicates: telemetry.counted('MessagesDuplicate'),
  };
}
