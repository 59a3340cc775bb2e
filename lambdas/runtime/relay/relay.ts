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
import type { BusBreaker } from './bus-breaker.ts';
import { batchEntries } from './entry-batches.ts';
import { faultOfCall, faultOfEntry, type PublishFault } from './publish-fault.ts';

/**
 * The core of both relays: claim, publish, mark, and what becomes of a failure.
 *
 *     born                       claim                      publish      mark
 *      |--- leased to the stream ---|                          |          |
 *      |<------- bornLease -------->|<------ claimLease ------>|          |
 *                                   leaseUntil moves           PutEvents  PENDING -> PUBLISHED
 *
 * Publish comes first and mark second: a crash in between publishes again under the same event id, which the
 * inbox absorbs. The other order loses the event.
 */
export interface RelayContext extends OutboxContext {
  readonly bus: Bus;
  /** Limits how many calls to the bus are under way at once. Its own, so that published events are marked while the bus hangs. */
  readonly publishes: LimitFunction;
}

/** What each of the relay's two handlers is made of. */
export interface RelayHandlerDeps {
  /** From `readRelayConfig(process.env)`. */
  readonly config: RelayConfig;
  /** The Mailroom table. */
  readonly table: Table;
  /** Where events are published. */
  readonly bus: Bus;
  /** @default the machine's */
  readonly clock?: Clock | undefined;
  /** @default the machine's */
  readonly random?: RandomBytes | undefined;
  /** @default `powertoolsTelemetry` */
  readonly telemetry?: Telemetry | undefined;
  /**
   * How many calls to the bus, and how many to the table, are under way at once.
   *
   * @default the stream: {@link CONCURRENCY}; the sweep: 8 for each shard that it reads at a time, at most 16 shards
   */
  readonly concurrency?: number | undefined;
}

/**
 * Calls of the stream relay under way at once: the ten that 100 records make, the mapping's default, go out together. It is
 * bound by its CPU from about eight on (`npm run bench -- relay`): more would bring little, and load a bus that is in trouble.
 */
export const CONCURRENCY = 16;

/** How many rows are worked on together: claimed, and published before their lease can end. */
export const GROUP_ROWS = 100;

/** How often one PutEvents call that the bus throttled or failed is tried, while the lease lasts. */
const PUBLISH_TRIES = 3;

/**
 * What became of one row:
 *
 * - `published`, and marked; `unmarked`: published, and still PENDING in the table.
 * - `bus` or `access`: not published, and no attempt was counted. `event` or `unknown`: its failure is recorded on the row.
 * - `skipped`: not tried, because the breaker is open.
 * - `leaseTooShort`: not tried, because it may not be published under the lease that it has.
 */
export interface PublishOutcome<R extends PendingRow> {
  readonly row: R;
  readonly is: 'published' | 'unmarked' | 'skipped' | 'leaseTooShort' | PublishFault;
  /** Why it was not published, where the bus said so. */
  readonly error?: MailroomError | undefined;
}

/** Makes the context of one relay. */
export function relayContext(deps: RelayHandlerDeps, path: RelayPath, concurrency: number): RelayContext {
  const { clock = systemClock, random = systemRandomBytes, config } = deps;
  const telemetry =
    deps.telemetry ?? powertoolsTelemetry({ service: 'mailroom-relay', tableName: config.tableName });
  const limits = { writes: pLimit(concurrency), publishes: pLimit(concurrency) };
  return { ...deps, clock, random, telemetry, path, ...limits };
}

/** The rows with one of these outcomes. */
export function rowsThat<R extends PendingRow>(
  outcomes: readonly PublishOutcome<R>[],
  ...wanted: readonly PublishOutcome<R>['is'][]
): R[] {
  return outcomes.filter((outcome) => wanted.includes(outcome.is)).map(({ row }) => row);
}

/**
 * Publishes rows that are ours, and marks them.
 *
 * @param breaker - what the bus does not take in this pass
 * @param mayPublish - called for each row right before each call: may it still be published without a claim?
 * @returns an outcome for each row
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
  const waiting: R[] = []; // published, to be marked 25 at a time
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

/** One PutEvents call, tried again while that helps. Failures of the events themselves are recorded. */
async function publishBatch<R extends PendingRow>(
  context: RelayContext,
  batch: readonly R[],
  breaker: BusBreaker,
  ours: (row: R) => boolean,
): Promise<PublishOutcome<R>[]> {
  const { clock, random, telemetry } = context;
  let rows = batch.filter((row) => !breaker.isOpen(row.entry.source));
  const done = batch.filter((row) => !rows.includes(row)).map((row) => outcome(row, 'skipped'));
  for (let attempt = 1; rows.length > 0; attempt += 1) {
    const answers = await putEntries(context, rows, ours);
    for (const { row, is, error } of answers)
      if (error !== undefined && (is === 'event' || is === 'unknown'))
        await failEvent(context, row, error, is === 'event');
    rows = attempt < PUBLISH_TRIES ? rowsThat(answers, 'bus') : [];
    done.push(...answers.filter(({ row }) => !rows.includes(row)));
    if (rows.length === 0) break;
    telemetry.count('PublishRetries');
    await clock.sleep(backoffMs(attempt, 100, 1_000, random));
  }
  const failed = done.filter(({ is }) => is === 'bus' || is === 'access');
  breaker.record({
    took: sourcesOf(rowsThat(done, 'published')),
    failed: sourcesOf(failed.map(({ row }) => row)),
  });
  if (failed[0] !== undefined) {
    telemetry.count('BusFailures');
    telemetry.log.error(
      'The bus, or the right to publish to it, failed; nothing is lost, no attempt is counted',
      { entries: failed.length, error: failed[0].error },
    );
  }
  return done;
}

/**
 * Calls PutEvents for the rows that may still be published, and reads every entry's result. One invalid entry can fail a whole
 * call, and so can one source that may not be published: before anything is judged, the first is made again for each entry, the
 * second for each source, one call after the other.
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

/** The calls that a failed call is made again in, so that its failure reaches only the rows that it belongs to. */
function partsOf<R extends PendingRow>(rows: readonly R[], fault: PublishFault): readonly (readonly R[])[] {
  if (fault === 'event') return rows.map((row) => [row]);
  if (fault !== 'access') return [rows];
  return [...sourcesOf(rows)].map((source) => rows.filter((row) => row.entry.source === source));
}

function outcomeOfEntry<R extends PendingRow>(row: R, result: BusResult | undefined): PublishOutcome<R> {
  if (result?.ok) return outcome(row, 'published');
  const { code, message } = result ?? {
    code: 'NoAnswer',
    message: 'PutEvents did not answer for this entry',
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
