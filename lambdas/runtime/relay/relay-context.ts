import pLimit from 'p-limit';
import { type Clock, systemClock } from '../base/clock.ts';
import type { RelayConfig } from '../base/config.ts';
import type { Bus } from '../bus/event-bus.ts';
import { tracedBus } from '../observe/message-spans.ts';
import { powertoolsTelemetry, type Telemetry } from '../observe/telemetry.ts';
import type { CallLimit, OutboxContext, RelayPath } from '../outbox/outbox-transitions.ts';
import type { PendingRow } from '../outbox/pending-row.ts';
import { type RandomBytes, systemRandomBytes } from '../store/event-id.ts';
import type { Table } from '../store/table.ts';

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
  readonly publishes: CallLimit;
  /** The maximum of both limits. */
  readonly concurrency: number;
  /** Limits the failed calls that are repeated at a time. */
  readonly retries: CallLimit;
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
  return {
    ...deps,
    bus: tracedBus(deps.bus, config.busName),
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

/** After this many consecutive failed calls for one source, its events wait for the next pass. */
const SOURCE_FAILURES_MAX = 3;

/** After this many consecutive failed calls, whatever their source, this pass stops publishing. */
const BUS_FAILURES_MAX = 10;

/**
 * Tracks, for one pass of the relay, which sources the bus currently refuses. A service that has lost its permission to publish
 * must not hold up the others, and a bus that is down must not receive a call for every event.
 */
export interface BusBreaker {
  /** Returns true if events of this source are skipped for the rest of this pass. */
  isOpen(source: string): boolean;
  /** Returns true if the pass has stopped publishing to the bus. */
  isStopped(): boolean;
  /** Records the result of a call: the sources with an accepted entry, and those with failed entries. */
  record(call: { readonly took: ReadonlySet<string>; readonly failed: ReadonlySet<string> }): void;
}

/** Creates the breaker of one pass. */
export function createBusBreaker(): BusBreaker {
  const failures = new Map<string, number>();
  let inARow = 0;
  const isStopped = () => inARow >= BUS_FAILURES_MAX;
  return {
    isStopped,
    isOpen: (source) => isStopped() || (failures.get(source) ?? 0) >= SOURCE_FAILURES_MAX,
    record: ({ took, failed }) => {
      // Calls already in flight when their source's breaker opened say nothing new about the bus.
      const news = [...failed].some((source) => (failures.get(source) ?? 0) < SOURCE_FAILURES_MAX);
      for (const source of took) failures.delete(source);
      for (const source of failed)
        if (!took.has(source)) failures.set(source, (failures.get(source) ?? 0) + 1);
      if (took.size > 0) inARow = 0;
      else if (news) inARow += 1;
    },
  };
}

/** The sources that this relay publishes. */
export interface DeclaredSources {
  /** Returns true if the row's source is declared. */
  has(row: PendingRow): boolean;
  /** Logs rows with undeclared sources, and the sources. */
  report(rows: readonly PendingRow[]): void;
}

/** The maximum number of sources and event ids in a log line. */
const NAMED_MAX = 10;

/** A forged source may be as long as a row. */
const SOURCE_CHARS_MAX = 100;

/**
 * Makes the set of sources that the relay may publish, from its settings. Any writer of the outbox chooses the `source` of its
 * row, and the bus trusts the relay: without this check, any service could write a row that is published as `payments`.
 *
 * A row with another source is not claimed, published or changed. It stays PENDING, and the sweep counts it.
 */
export function declaredSources(
  { sources }: Pick<RelayConfig, 'sources'>,
  telemetry: Telemetry,
): DeclaredSources {
  const declared = sources === undefined ? undefined : new Set(sources);
  return {
    has: ({ entry }) => declared?.has(entry.source) ?? true,
    report: (rows) => {
      if (rows.length === 0) return;
      const sources = new Set(rows.map(({ entry }) => entry.source.slice(0, SOURCE_CHARS_MAX)));
      telemetry.log.error(
        'Events from an undeclared source are waiting: npx cdk-mailroom why <eventId> --payload shows one and what to do',
        {
          events: rows.length,
          sources: [...sources].slice(0, NAMED_MAX),
          eventIds: rows.slice(0, NAMED_MAX).map(({ eventId }) => eventId),
        },
      );
    },
  };
}
