import { CLOCK_SKEW_MS, type Clock } from '../base/clock.ts';
import type { RelayConfig } from '../base/config.ts';
import { asMailroomError, type MailroomError } from '../base/errors.ts';
import { type Bus, type BusResult, batchEntries } from '../bus/event-bus.ts';
import type { Telemetry } from '../observe/telemetry.ts';
import { entryError } from '../outbox/entry-error.ts';
import type { PendingRow } from '../outbox/pending-row.ts';
import { backoffMs } from '../store/backoff.ts';
import type { CallLimit } from '../store/dynamo/outbox-writes.ts';
import type { RandomBytes } from '../store/event-id.ts';
import { UPDATE_EACH_MAX } from '../store/table.ts';
import type { BusBreaker } from './bus-breaker.ts';
import { faultOfCall, faultOfEntry, type PublishFault } from './publish-fault.ts';

/** The number of rows processed together: they are claimed, and published before their lease can end. */
export const GROUP_ROWS = 100;

/** A row of any storage, held by this relay. */
export type EventRow = Pick<PendingRow, 'eventId' | 'leaseUntil' | 'attempts' | 'entry'>;

/** Records the results of publishes in the storage of the rows. Neither call throws. */
export interface Transitions<in R extends EventRow> {
  /** PENDING -> PUBLISHED, under any lease, because the events *were* published. @returns the rows that could not be marked */
  markPublished(rows: readonly R[]): Promise<readonly EventRow[]>;
  /** Records the event's own failure. @param refused - true if it can never be published: it becomes DEAD */
  failEvent(row: R, error: MailroomError, refused: boolean): Promise<void>;
}

/** Dependencies of {@link publishEvents}. */
export interface PublishContext<in R extends EventRow> {
  readonly config: Pick<RelayConfig, 'publishTimeoutMs'>;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly telemetry: Telemetry;
  readonly transitions: Transitions<R>;
  /** Limits concurrent calls to the bus. Separate from calls to the storage, so that published events are marked while the bus hangs. */
  readonly publishes: CallLimit;
  /** The maximum of `publishes`. */
  readonly concurrency: number;
  /** Limits the failed calls that are repeated at a time. */
  readonly retries: CallLimit;
}

/**
 * Publishes rows that this relay holds, and marks them.
 *
 * @param breaker - tracks the sources that the bus refuses in this pass
 * @param mayPublish - called for each row immediately before each call: true if the row may still be published under its lease
 * @returns one outcome per row
 */
export async function publishEvents<R extends EventRow>(
  context: PublishContext<R>,
  rows: readonly R[],
  breaker: BusBreaker,
  mayPublish: (row: R) => boolean = () => true,
): Promise<PublishOutcome<R>[]> {
  const { config, clock, publishes, transitions } = context;
  const outlastsPublish = (row: R) => row.leaseUntil - clock.now() > config.publishTimeoutMs + CLOCK_SKEW_MS;
  const ours = (row: R) => mayPublish(row) && outlastsPublish(row);
  const waiting: R[] = []; // published, and marked in batches of 25
  const unmarked = new Set<EventRow>();
  const mark = async (some: readonly R[]) => {
    for (const row of await transitions.markPublished(some)) unmarked.add(row);
  };
  const outcomes = await Promise.all(
    batchEntries(rows).map(async (batch) => {
      const ofBatch = await publishes(() => publishBatch(context, batch, breaker, ours));
      waiting.push(...withOutcome(ofBatch, 'published'));
      while (waiting.length >= UPDATE_EACH_MAX) await mark(waiting.splice(0, UPDATE_EACH_MAX));
      return ofBatch;
    }),
  );
  await mark(waiting);
  return outcomes
    .flat()
    .map((outcome) => (unmarked.has(outcome.row) ? { ...outcome, is: 'unmarked' } : outcome));
}

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
export interface PublishOutcome<R extends EventRow> {
  readonly row: R;
  readonly is: 'published' | 'unmarked' | 'skipped' | 'leaseTooShort' | PublishFault;
  /** The reason why it was not published, if the bus gave one. */
  readonly error?: MailroomError | undefined;
}

/** Returns the rows with one of these outcomes. */
export function withOutcome<R extends EventRow>(
  outcomes: readonly PublishOutcome<R>[],
  ...wanted: readonly PublishOutcome<R>['is'][]
): R[] {
  return outcomes.filter((outcome) => wanted.includes(outcome.is)).map(({ row }) => row);
}

/** Makes one PutEvents call and retries it while that can help. */
async function publishBatch<R extends EventRow>(
  context: PublishContext<R>,
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
    took: sourcesOf(withOutcome(done, 'published')),
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
async function retryBatch<R extends EventRow>(
  context: PublishContext<R>,
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
async function putOnce<R extends EventRow>(
  context: PublishContext<R>,
  rows: readonly R[],
  ours: (row: R) => boolean,
): Promise<PublishOutcome<R>[]> {
  const answers = await putEntries(context, rows, ours);
  for (const { row, is, error } of answers)
    if (error !== undefined && (is === 'event' || is === 'unknown'))
      await context.transitions.failEvent(row, error, is === 'event');
  return answers;
}

/**
 * Calls PutEvents for the rows that may still be published, and reads the result of every entry. One invalid entry, or one source
 * without permission, can fail a whole call. Before any row is judged, the call is therefore repeated: per entry in the first
 * case, per source in the second, one call after the other.
 */
async function putEntries<R extends EventRow>(
  context: PublishContext<R>,
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
function partsOf<R extends EventRow>(rows: readonly R[], fault: PublishFault): readonly (readonly R[])[] {
  if (fault === 'event') return rows.map((row) => [row]);
  if (fault !== 'access') return [rows];
  return [...sourcesOf(rows)].map((source) => rows.filter((row) => row.entry.source === source));
}

function outcomeOfEntry<R extends EventRow>(row: R, result: BusResult | undefined): PublishOutcome<R> {
  if (result?.ok) return outcome(row, 'published');
  const error = entryError(row, result);
  return outcome(row, faultOfEntry(error.code), error);
}

function outcome<R extends EventRow>(
  row: R,
  is: PublishOutcome<R>['is'],
  error?: MailroomError,
): PublishOutcome<R> {
  return { row, is, error };
}

function sourcesOf(rows: readonly EventRow[]): ReadonlySet<string> {
  return new Set(rows.map((row) => row.entry.source));
}
