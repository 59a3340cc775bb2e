import pLimit from 'p-limit';
import { type Clock, systemClock } from '../base/clock.ts';
import type { RelayConfig } from '../base/config.ts';
import type { Bus } from '../bus/event-bus.ts';
import { tracedBus } from '../observe/message-spans.ts';
import { powertoolsTelemetry, type Telemetry } from '../observe/telemetry.ts';
import type { RelayPath } from '../outbox/outbox-transitions.ts';
import type { PendingRow } from '../outbox/pending-row.ts';
import { failEvent, markPublished, type OutboxContext } from '../store/dynamo/outbox-writes.ts';
import { type RandomBytes, systemRandomBytes } from '../store/event-id.ts';
import type { Table } from '../store/table.ts';
import { type BusBreaker, createBusBreaker } from './bus-breaker.ts';
import type { PublishContext } from './publish-events.ts';

/**
 * The core of both relays: claim, publish, mark, and failure handling.
 *
 *     born                       claim                      publish      mark
 *      |--- leased to the stream ---|                          |          |
 *      |<------ streamLease ------->|<------ claimLease ------>|          |
 *                                   leaseUntil moves           PutEvents  PENDING -> PUBLISHED
 *
 * Rows are published first and marked second: after a crash in between, the event is published again under the same event id,
 * and the inbox absorbs it. The other order would lose the event.
 */
export interface RelayContext extends OutboxContext, PublishContext<PendingRow> {
  readonly config: RelayConfig;
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

/** Creates the context of one relay. */
export function relayContext(deps: RelayHandlerDeps, path: RelayPath, concurrency: number): RelayContext {
  const { clock = systemClock, random = systemRandomBytes, config } = deps;
  const telemetry =
    deps.telemetry ?? powertoolsTelemetry({ service: 'mailroom-relay', tableName: config.tableName });
  const context: OutboxContext = {
    config,
    table: deps.table,
    clock,
    random,
    telemetry,
    path,
    writes: pLimit(concurrency),
  };
  return {
    ...context,
    ...publishLimits(concurrency),
    bus: tracedBus(deps.bus, config.busName),
    transitions: {
      markPublished: (rows) => markPublished(context, rows),
      failEvent: (...failure) => failEvent(context, ...failure),
    },
  };
}

/** The limits of the calls to the bus of one relay. */
export function publishLimits(
  concurrency: number,
): Pick<PublishContext<never>, 'concurrency' | 'publishes' | 'retries'> {
  return { concurrency, publishes: pLimit(concurrency), retries: pLimit(RETRIES_AT_ONCE) };
}

/** Starts a pass, whose concurrent calls are few until the bus has accepted one. */
export function startPass({
  publishes,
  concurrency,
}: Pick<PublishContext<never>, 'publishes' | 'concurrency'>): BusBreaker {
  publishes.concurrency = Math.min(FIRST_CALLS, concurrency);
  return createBusBreaker();
}
