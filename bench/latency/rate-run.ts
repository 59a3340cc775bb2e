import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { BatchGetCommand } from '@aws-sdk/lib-dynamodb';
import pMap from 'p-map';
import { systemClock } from '../../lambdas/runtime/base/clock.ts';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { outboxKeyOf } from '../../lambdas/runtime/store/event-id.ts';
import { inboxKey } from '../../lambdas/runtime/store/keys.ts';
import type { Key } from '../../lambdas/runtime/store/table.ts';
import { CONSUMER, type PlacedOrder, type Producer } from './producers.ts';

/** Parameters of a run. */
export interface RatePlan {
  readonly ordersPerSecond: number;
  /** Orders that are timed. */
  readonly orders: number;
  /** Warm-up orders at the same rate, so that every function has its processes. */
  readonly warmUpOrders: number;
}

/** The result. Durations are in milliseconds. */
export interface RateRun {
  readonly system: Producer['system'];
  readonly asked: number;
  /** Orders placed per second; lower than requested if the handlers could not keep up. */
  readonly ordersPerSecond: number;
  readonly orders: number;
  /** True if orders were placed at the requested rate and the backlog did not grow. */
  readonly keptUp: boolean;
  /** From the start of the handler to its end. */
  readonly handler: Percentiles;
  /** From the commit to the bus. */
  readonly toBus: Percentiles;
  /** From the bus to PROCESSED. */
  readonly busToProcessed: Percentiles;
  /** From the commit to PROCESSED. */
  readonly toProcessed: Percentiles;
}

/** Percentiles of durations in milliseconds. */
interface Percentiles {
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** The maximum number of orders being placed concurrently. */
const PLACED_AT_ONCE = 32;

/** The share of the requested rate at which orders count as placed fast enough. */
const PLACED_SHARE_MIN = 0.95;

/** The backlog has grown if, at the end, more orders wait than arrive in this many seconds. */
const BACKLOG_MAX_S = 0.5;

/** An order that is not PROCESSED by then is lost: longer than a born lease and two sweeps. */
const LOST_AFTER_MS = 150_000;

const LOOK_EVERY_MS = 200;

/** The maximum number of keys per read (DynamoDB API reference, BatchGetItem). */
const KEYS_MAX = 100;

/**
 * Places orders at an even rate, waits until each is PROCESSED, and reads from the rows when each step finished. Reads nothing
 * while orders arrive, because reading adds load.
 *
 * @throws `LATENCY_LOST` if an order was not published or not PROCESSED in time
 */
export async function runAtRate(
  deps: { readonly documents: DynamoDBDocumentClient; readonly tableName: string },
  producer: Producer,
  plan: RatePlan,
): Promise<RateRun> {
  const { system } = producer;
  const runId = `${system}-${Date.now().toString(36)}`;
  const startedAt = Date.now();
  const dueAt = (n: number) => startedAt + (n / plan.ordersPerSecond) * 1_000;
  const all = await pMap(
    Array.from({ length: plan.warmUpOrders + plan.orders }, (_, n) => n),
    async (n) => {
      await systemClock.sleep(dueAt(n) - Date.now());
      return producer.place(`${runId}-${n}`);
    },
    { concurrency: PLACED_AT_ONCE },
  );
  const lostAt = Date.now() + LOST_AFTER_MS;
  const eventIds = all.map(({ eventId }) => eventId);
  const processed = await timesOf(deps, eventIds, {
    key: (eventId) => inboxKey(CONSUMER, eventId),
    status: 'PROCESSED',
    at: 'processedAt',
    lostAt,
  });
  const published =
    system !== 'direct'
      ? await timesOf(deps, eventIds, { key: outboxKeyOf, status: 'PUBLISHED', at: 'publishedAt', lostAt })
      : new Map(all.map(({ eventId, publishedAt }) => [eventId, publishedAt ?? Number.NaN]));

  const orders = all.slice(plan.warmUpOrders);
  const since = (of: (order: PlacedOrder) => number) => percentiles(orders.map(of));
  const endedAt = Math.max(dueAt(all.length), ...orders.map(({ doneAt }) => doneAt));
  const ordersPerSecond = (orders.length * 1_000) / (endedAt - dueAt(plan.warmUpOrders));
  const backlog = all.filter(({ eventId }) => (processed.get(eventId) ?? 0) > endedAt).length;
  return {
    system,
    asked: plan.ordersPerSecond,
    ordersPerSecond,
    orders: orders.length,
    keptUp:
      ordersPerSecond >= plan.ordersPerSecond * PLACED_SHARE_MIN &&
      backlog <= plan.ordersPerSecond * BACKLOG_MAX_S,
    handler: since(({ beganAt, doneAt }) => doneAt - beganAt),
    toBus: since(({ eventId, committedAt }) => (published.get(eventId) ?? 0) - committedAt),
    busToProcessed: since(({ eventId }) => (processed.get(eventId) ?? 0) - (published.get(eventId) ?? 0)),
    toProcessed: since(({ eventId, committedAt }) => (processed.get(eventId) ?? 0) - committedAt),
  };
}

/** The rows that record when a step finished. */
interface StepRows {
  readonly key: (eventId: string) => Key;
  /** The status of a row whose step is finished. */
  readonly status: string;
  /** The attribute with the time. */
  readonly at: string;
  /** The deadline in epoch milliseconds. */
  readonly lostAt: number;
}

/** Waits until a step is finished for every event. @returns the time by event id */
async function timesOf(
  { documents, tableName }: { readonly documents: DynamoDBDocumentClient; readonly tableName: string },
  eventIds: readonly string[],
  { key, status, at, lostAt }: StepRows,
): Promise<ReadonlyMap<string, number>> {
  const times = new Map<string, number>();
  const idOf = new Map(eventIds.map((eventId) => [nameOf(key(eventId)), eventId]));
  for (;;) {
    const open = eventIds.filter((eventId) => !times.has(eventId));
    if (open.length === 0) return times;
    if (Date.now() > lostAt) {
      throw new MailroomError(
        'LATENCY_LOST',
        `${open.length} of ${eventIds.length} events are not ${status} after ${LOST_AFTER_MS / 1_000} s, e.g. ` +
          `${open[0]}. See the engine's log, .local/engine-of-bench.log.`,
      );
    }
    // If the first of them is not finished, reading the rest is pointless.
    const asked = open.slice(0, KEYS_MAX).map((eventId) => ({ ...key(eventId) }));
    const { Responses = {} } = await documents.send(
      new BatchGetCommand({ RequestItems: { [tableName]: { Keys: asked, ConsistentRead: true } } }),
    );
    const done = (Responses[tableName] ?? []).filter((row) => row.status === status);
    for (const row of done) times.set(idOf.get(nameOf(row as unknown as Key)) ?? '', Number(row[at]));
    if (done.length === 0) await systemClock.sleep(LOOK_EVERY_MS);
  }
}

function nameOf({ PK, SK }: Key): string {
  return `${PK}/${SK}`;
}

/** By nearest rank: each is a duration that was measured. */
function percentiles(durations: readonly number[]): Percentiles {
  const sorted = durations.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.ceil(share * sorted.length) - 1] ?? Number.NaN;
  return { p50Ms: at(0.5), p99Ms: at(0.99) };
}

/** A rate that was tried. */
export interface TriedRate {
  /** Orders per second. */
  readonly asked: number;
  /** True if it was sustained. */
  readonly keptUp: boolean;
}

/** Until a rate is too high, each rate is this many times the previous one. */
const STEP = 2;

/** The search ends when the lowest failed rate is at most this many times the highest sustained one. */
const CLOSE = 1.2;

/**
 * The next rate to try in the search for the highest sustained one: increases first, then narrows down.
 *
 * @returns `undefined` once the highest is known to a fifth
 */
export function nextRate(tried: readonly TriedRate[]): number | undefined {
  const carried = highestCarried(tried)?.asked ?? 0;
  const above = lowestTooHigh(tried);
  if (above === undefined) return Math.max(1, carried * STEP);
  if (above <= Math.max(carried * CLOSE, carried + 1)) return undefined;
  return Math.round(Math.sqrt(Math.max(1, carried) * above));
}

/** The highest sustained rate. */
export function highestCarried<T extends TriedRate>(tried: readonly T[]): T | undefined {
  return tried.filter(({ keptUp }) => keptUp).sort((a, b) => b.asked - a.asked)[0];
}

/** The lowest rate that was too high. Failures below a sustained rate are ignored as bad luck. */
export function lowestTooHigh(tried: readonly TriedRate[]): number | undefined {
  const carried = highestCarried(tried)?.asked ?? 0;
  const tooHigh = tried.filter(({ keptUp, asked }) => !keptUp && asked > carried);
  return tooHigh.length === 0 ? undefined : Math.min(...tooHigh.map(({ asked }) => asked));
}
