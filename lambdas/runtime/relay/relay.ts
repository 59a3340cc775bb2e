import pLimit, { type LimitFunction } from 'p-limit';
import type { Bus, BusResult } from '../bus/event-bus.ts';
import { CLOCK_SKEW_MS, type Clock, systemClock } from '../clock.ts';
import type { RelayConfig } from '../config.ts';
import { asMailroomError, MailroomError } from '../errors.ts';
import { type RandomBytes, systemRandomBytes } from '../store/event-id.ts';
import { failEvent, markPublished, type OutboxContext, type RelayPath } from '../store/outbox-transitions.ts';
import type { PendingRow } from '../store/pending-row.ts';
import { backoffMs } from '../store/retry.ts';
import { type Table, UPDATE_EACH_MAX } from '../store/table.ts';
import { powertoolsTelemetry, type Telemetry } from '../telemetry.ts';
import { type BusBreaker, createBusBreaker } from './bus-breaker.ts';
import { batchEntries } from './entry-batches.ts';
import { faultOfCall, faultOfEntry, type PublishFault } from './publish-fault.ts';

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

/** The maximum number of tries of one PutEvents call that the bus throttled or failed, within the lease. */
const PUBLISH_TRIES = 3;

/**
 * The outcome of one row:
 *
 * - `published`: published and marked; `unmarked`: published, but still PENDING in the table.
 * - `bus` or `access`: not published, and no attempt was counted. `event` or `unknown`: its failure is recorded in the row.
 * - `skipped`: not tried, because the breaker is open.
 * - `leaseTooShort`: not tried, because its current lease does not allow a publish.
 */
export interface PublishOutcome<R extends PendingRow> {
  readonly row: R;
  readonly is: 'published' | 'unmarked' | 'skipped' | 'leaseTooShort' | PublishFault;
  /** The reason why it was not published, if the bus gave one. */
  readonly error?: MailroomError | undefined;
}

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

/** Returns the rows with one of these outcomes. */
export function rowsThat<R extends PendingRow>(
  outcomes: readonly PublishOutcome<R>[],
  ...wanted: readonly PublishOutcome<R>['is'][]
): R[] {
  return outcomes.filter((outcome) => wanted.includes(outcome.is)).map(({ row }) => row);
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

/** Makes one PutEvents call and retries it while that can help. */
async function publishBatch<R extends PendingRow>(
  context: RelayContext,
  batch: readonly R[],
  breaker: BusBreaker,
  ours: (row: R) => boolean,
): Promise<PublishOutcome<R>[]> {
  const { publishes, concurrency, retries, telemetry } = context;
  const rows = batch.filter((row) => !breaker.isOpen(row.entry.source));
  const done = batch.filter((row) => !rows.includes(row)).map((row) => outcome(row, 'skipped'));
  const tried = await putOnce(context, rows, ours);
  const again = tried.filter(({ is }) => is === 'bus');
  done.push(...tried.filter(({ is }) => is !== 'bus'));
  if (again.length > 0) done.push(...(await retries(() => retryBatch(context, again, breaker, ours))));
  if (done.some(({ is }) => is === 'published')) publishes.concurrency = concurrency;
  const failed = done.filter(({ is }) => is === 'bus' || is === 'access');
  breaker.record({
    took: sourcesOf(rowsThat(done, 'published')),
    failed: sourcesOf(failed.map(({ row }) => row)),
  });
  if (failed[0] !== undefined) {
    telemetry.count('BusFailures');
    telemetry.log.error(
      'The bus, or the permission to publish to it, failed; nothing is lost, no attempt is counted',
      { entries: failed.length, error: failed[0].error },
    );
  }
  return done;
}

/** Repeats a call that the bus failed, unless other calls have stopped its sources in the meantime. */
async function retryBatch<R extends PendingRow>(
  context: RelayContext,
  failed: readonly PublishOutcome<R>[],
  breaker: BusBreaker,
  ours: (row: R) => boolean,
): Promise<PublishOutcome<R>[]> {
  const { clock, random, telemetry } = context;
  const done: PublishOutcome<R>[] = [];
  let again = failed;
  for (let attempt = 1; attempt < PUBLISH_TRIES; attempt += 1) {
    const stopped = again.filter(({ row }) => breaker.isOpen(row.entry.source));
    done.push(...stopped);
    again = again.filter((tried) => !stopped.includes(tried));
    if (again.length === 0) break;
    telemetry.count('PublishRetries');
    await clock.sleep(backoffMs(attempt, 100, 1_000, random));
    const tried = await putOnce(
      context,
      again.map(({ row }) => row),
      ours,
    );
    again = tried.filter(({ is }) => is === 'bus');
    done.push(...tried.filter(({ is }) => is !== 'bus'));
  }
  return [...done, ...again];
}

/** Makes one try, and records the failures of the events themselves. */
async function putOnce<R extends PendingRow>(
  context: RelayContext,
  rows: readonly R[],
  ours: (row: R) => boolean,
): Promise<PublishOutcome<R>[]> {
  const answers = await putEntries(context, rows, ours);
  for (const { row, is, error } of answers)
    if (error !== undefined && (is === 'event' || is === 'unknown'))
      await failEvent(context, row, error, is === 'event');
  return answers;
}

/**
 * Calls PutEvents for the rows that may still be published, and reads the result of every entry. One invalid entry, or one source
 * without permission, can fail a whole call. Before any row is judged, the call is therefore repeated: per entry in the first
 * case, per source in the second, one call after the other.
 */
async function putEntries<R extends PendingRow>(
  context: RelayContext,
  rows: readonly R[],
  ours: (row: R) => boolean,
): Promise<PublishOutcome<R>[]> {
  const sent = rows.filter(ours);
  const answers = rows.filter((row) => !sent.includes(row)).map((row) => outcome(row, 'leaseTooShort'));
  if (sent.length === 0) return answers;
  try {
    const entries = sent.map(({ entry }) => entry);
    const results = await context.bus.put(entries, context.config.publishTimeoutMs);
    return [...answers, ...sent.map((row, i) => outcomeOfEntry(row, results[i]))];
  } catch (thrown) {
    const fault = faultOfCall(thrown);
    const parts = partsOf(sent, fault);
    if (parts.length === 1)
      return [...answers, ...sent.map((row) => outcome(row, fault, asMailroomError(thrown)))];
    for (const part of parts) answers.push(...(await putEntries(context, part, ours)));
    return answers;
  }
}

/** Splits a failed call, so that the failure affects only the rows that caused it. */
function partsOf<R extends PendingRow>(rows: readonly R[], fault: PublishFault): readonly (readonly R[])[] {
  if (fault === 'event') return rows.map((row) => [row]);
  if (fault !== 'access') return [rows];
  return [...sourcesOf(rows)].map((source) => rows.filter((row) => row.entry.source === source));
}

function outcomeOfEntry<R extends PendingRow>(row: R, result: BusResult | undefined): PublishOutcome<R> {
  if (result?.ok) return outcome(row, 'published');
  const { code, message } = result ?? {
    code: 'NoAnswer',
    message: 'PutEvents returned no result for this entry',
  };
  return outcome(row, faultOfEntry(code), new MailroomError(code, message));
}

function outcome<R extends PendingRow>(
  row: R,
  is: PublishOutcome<R>['is'],
  error?: MailroomError,
): PublishOutcome<R> {
  return { row, is, error };
}

function sourcesOf(rows: readonly PendingRow[]): ReadonlySet<string> {
  return new Set(rows.map((row) => row.entry.source));
}
