import pLimit from 'p-limit';
import { type Clock, withDeadline } from '../../base/clock.ts';
import type { AtOnceConfig } from '../../base/config.ts';
import { asMailroomError, errorCode } from '../../base/errors.ts';
import { type Bus, type BusResult, batchEntries } from '../../bus/event-bus.ts';
import { tracedBus } from '../../observe/message-spans.ts';
import type { Telemetry } from '../../observe/telemetry.ts';
import { entryError } from '../../outbox/entry-error.ts';
import type { OutboxEntry } from '../../outbox/outbox-entry.ts';
import { type PendingRow, pendingRow } from '../../outbox/pending-row.ts';
import type { RandomBytes } from '../event-id.ts';
import type { Table } from '../table.ts';
import { type MarkContext, markPublished } from './outbox-writes.ts';

/** Publishes the events of a commit in their producer; created by {@link createAtOncePublisher}. */
export interface AtOncePublisher {
  /** The length of the producer's turn, from the creation of an event, milliseconds. */
  readonly timeoutMs: number;
  /**
   * Publishes and marks committed rows while their producer's turn lasts. It never throws, and returns when the turn ends.
   *
   * @param entries - of one commit
   */
  publish(entries: readonly OutboxEntry[], parts: AtOnceParts): Promise<void>;
}

/** The parts of an outbox that its publisher uses. */
export interface AtOnceParts {
  readonly table: Table;
  readonly clock: Clock;
  readonly random: RandomBytes;
  /** @default nothing is logged or counted */
  readonly telemetry?: Telemetry | undefined;
}

/** Dependencies of {@link createAtOncePublisher}. */
export interface AtOncePublisherDeps {
  /** From `readAtOnceConfig(process.env)`. */
  readonly config: AtOnceConfig;
  /** The bus of the Mailroom. */
  readonly bus: Bus;
}

/** A commit has at most 100 events, so at most ten calls to the bus. */
const MARKS_AT_A_TIME = 10;

const nothing = () => {};

const SILENT: Telemetry = {
  log: { debug: nothing, info: nothing, warn: nothing, error: nothing },
  count: nothing,
  gauge: nothing,
  duration: nothing,
  flush: nothing,
};

/**
 * Creates a publisher for `createOutbox({ publishAtOnce })`.
 *
 *     mint    commit    PutEvents    mark      producerUntil      + 2 s                 leaseUntil
 *       |--------|----------|----------|-------------|--------------|------------------------|
 *       |<-------- only the producer publishes ----->|              | the stream relay claims | the sweep claims
 *
 * The row is born with the end of its producer's turn (`producerUntil`), so the stream relay leaves it alone until then. Each call
 * is tried once and abandoned at the end of the turn. Whatever fails, the row stays PENDING and no attempt is counted: the stream
 * relay publishes it after the turn.
 *
 * @example
 * ```ts
 * const publishAtOnce = createAtOncePublisher({ config: { busName, timeoutMs: 1_000, publishedRetentionDays: 7 }, bus });
 * const outbox = createOutbox({ config, table, publishAtOnce });
 * ```
 */
export function createAtOncePublisher({ config, bus }: AtOncePublisherDeps): AtOncePublisher {
  return {
    timeoutMs: config.timeoutMs,
    publish: async (entries, { table, clock, random, telemetry = SILENT }) => {
      const context = {
        config,
        path: 'producer' as const,
        table,
        clock,
        random,
        telemetry,
        writes: pLimit(MARKS_AT_A_TIME),
      };
      // Only the relay publishes a scheduled event.
      const due = entries.filter(({ Put }) => Put.Item.dueAt === undefined);
      const rows = due.flatMap(({ Put }) => pendingRow({ ...Put.Item }) ?? []);
      if (rows.length === 0) return;
      const traced = tracedBus(bus, config.busName);
      const published = Promise.all(
        batchEntries(rows).map((batch) => publishAndMark(context, traced, batch)),
      );
      await withDeadline(clock, untilTurnEnds(rows, clock), published.catch(nothing), nothing);
    },
  };
}

/** Publishes the rows of one call, and marks those that the bus accepted. */
async function publishAndMark(context: MarkContext, bus: Bus, rows: readonly PendingRow[]): Promise<void> {
  if (untilTurnEnds(rows, context.clock) <= 0) return; // the transaction took that long: the relay publishes
  try {
    const results = await putOnOpenConnection(context, bus, rows);
    await markPublished(
      context,
      rows.filter((_, index) => results[index]?.ok),
    );
    const left = rows.filter((_, index) => !results[index]?.ok);
    const [first] = left;
    if (first !== undefined) report(context, left, entryError(first, results[rows.indexOf(first)]));
  } catch (error) {
    report(context, rows, error);
  }
}

/** An idle connection that was closed, as after a pause between invocations, fails at once: then another try is made. */
const CLOSED = /^(ECONNRESET|EPIPE)$/;

async function putOnOpenConnection(
  { clock }: MarkContext,
  bus: Bus,
  rows: readonly PendingRow[],
): Promise<readonly BusResult[]> {
  const put = () =>
    bus.put(
      rows.map(({ entry }) => entry),
      untilTurnEnds(rows, clock),
    );
  try {
    return await put();
  } catch (error) {
    if (!CLOSED.test(errorCode(error)) || untilTurnEnds(rows, clock) <= 0) throw error;
    return put();
  }
}

function report({ telemetry }: MarkContext, rows: readonly PendingRow[], error: unknown): void {
  telemetry.count('BusFailures');
  telemetry.log.warn('Events could not be published at once; the relay publishes them', {
    eventIds: rows.map(({ eventId }) => eventId),
    error: asMailroomError(error),
  });
}

/** The time left until the first of the rows is no longer its producer's, milliseconds. */
function untilTurnEnds(rows: readonly PendingRow[], clock: Clock): number {
  return Math.min(...rows.map(({ producerUntil = 0 }) => producerUntil)) - clock.now();
}
