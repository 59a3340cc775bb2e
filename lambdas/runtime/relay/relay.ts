import pLimit, { type LimitFunction } from 'p-limit';
import type { Bus } from '../bus/event-bus.ts';
import { CLOCK_SKEW_MS, type Clock, systemClock } from '../clock.ts';
import type { RelayConfig } from '../config.ts';
import { type RandomBytes, systemRandomBytes } from '../store/event-id.ts';
import { markPublished, type OutboxContext, type RelayPath } from '../store/outbox-transitions.ts';
import type { PendingRow } from '../store/pending-row.ts';
import { type Table, UPDATE_EACH_MAX } from '../store/table.ts';
import { powertoolsTelemetry, type Telemetry } from '../telemetry.ts';
import { type BusBreaker, createBusBreaker } from './bus-breaker.ts';
import { batchEntries } from './entry-batches.ts';
import { type PublishOutcome, publishBatch, rowsThat } from './publish-batch.ts';

/**
 * The core of both relays: claim, publish, mark, and failure handling.
 *
 *     born                       claim                      publish      mark
 *      |--- leased to the stream ---|                          |          |
 *      |<------- bornLease -------->|<------ claimLease ------>|          |
 *                                   leaseUntil moves           PutEvents  PENDING -> PUBLISHED
 *
 * Rows are published first and marked second: after a crash in between, the event is published again under the same event id,
 * and the inbox absorbs it. The other order would lose the event.
 */
export interface RelayContext extends OutboxContext {
  readonly bus: Bus;
  /** Limits concurrent calls to the bus. Separate from `writes`, so that published events are marked while the bus hangs. */
  readonly publishes: LimitFunction;
  /** The maximum of both limits. */
  readonly concurrency: number;
  /** Limits the failed calls that are repeated at a time. */
  readonly retries: LimitFunction;
}

/** Dependencies of both of the relay's handlers. */
export interface RelayHandlerDeps {
  /** From `readRelayConfig(process.env)`. */
  readonly config: RelayConfig;
  /** The Mailroom table. */
  readonly table: Table;
  /** The bus on which events are published. */
  readonly bus: Bus;
  /** @default the machine's clock */
  readonly clock?: Clock | undefined;
  /** @default the machine's random source */
  readonly random?: RandomBytes | undefined;
  /** @default `powertoolsTelemetry` */
  readonly telemetry?: Telemetry | undefined;
  /**
   * The maximum number of concurrent calls to the bus, and to the table.
   *
   * @default the stream: {@link CONCURRENCY}; the sweep: 8 for each shard that it reads at a time, at most 16 shards
   */
  readonly concurrency?: number | undefined;
}

/**
 * The concurrent calls of the stream relay. From about eight on, it is limited by its CPU (`npm run bench -- relay`): more calls
 * would gain little and would load a bus in trouble.
 */
export const CONCURRENCY = 16;

/** The concurrent calls of a pass until the bus has accepted one: those that a bus in trouble gets before the breaker opens. */
const FIRST_CALLS = 8;

/** The number of failed calls that are repeated at a time. Three that fail finally stop their source, and the others end. */
const RETRIES_AT_ONCE = 4;

/** The number of rows processed together: they are claimed, and published before their lease can end. */
export const GROUP_ROWS = 100;

/** Creates the context of one relay. */
export function relayContext(deps: RelayHandlerDeps, path: RelayPath, concurrency: number): RelayContext {
  const { clock = systemClock, random = systemRandomBytes, config } = deps;
  const telemetry =
    deps.telemetry ?? powertoolsTelemetry({ service: 'mailroom-relay', tableName: config.tableName });
  return {
    ...deps,
    clock,
    random,
    telemetry,
    path,
    concurrency,
    writes: pLimit(concurrency),
    publishes: pLimit(concurrency),
    retries: pLimit(RETRIES_AT_ONCE),
  };
}

/** Starts a pass, whose concurrent calls are few until the bus has accepted one. */
export function startPass({ publishes, concurrency }: RelayContext): BusBreaker {
  publishes.concurrency = Math.min(FIRST_CALLS, concurrency);
  return createBusBreaker();
}

/**
 * Publishes rows that this relay holds, and marks them.
 *
 * @param breaker - tracks the sources that the bus refuses in this pass
 * @param mayPublish - called for each row immediately before each call: true if the row may still be published under its lease
 * @returns one outcome per row
 */
export async function publishEvents<R extends PendingRow>(
  context: RelayContext,
  rows: readonly R[],
  breaker: BusBreaker,
  mayPublish: (row: R) => boolean = () => true,
): Promise<PublishOutcome<R>[]> {
  const { config, clock, publishes } = context;
  const outlastsPublish = (row: R) => row.leaseUntil - clock.now() > config.publishTimeoutMs + CLOCK_SKEW_MS;
  const ours = (row: R) => mayPublish(row) && outlastsPublish(row);
  const waiting: R[] = []; // published, and marked in batches of 25
  const unmarked = new Set<R>();
  const mark = async (some: readonly R[]) => {
    for (const row of await markPublished(context, some)) unmarked.add(row);
  };
  const outcomes = await Promise.all(
    batchEntries(rows).map(async (batch) => {
      const ofBatch = await publishes(() => publishBatch(context, batch, breaker, ours));
      waiting.push(...rowsThat(ofBatch, 'published'));
      while (waiting.length >= UPDATE_EACH_MAX) await mark(waiting.splice(0, UPDATE_EACH_MAX));
      return ofBatch;
    }),
  );
  await mark(waiting);
  return outcomes
    .flat()
    .map((outcome) => (unmarked.has(outcome.row) ? { ...outcome, is: 'unmarked' } : outcome));
}
