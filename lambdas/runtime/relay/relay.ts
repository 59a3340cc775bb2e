import pLimit from 'p-limit';
import type { Bus } from '../bus/event-bus.ts';
import { CLOCK_SKEW_MS, type Clock } from '../clock.ts';
import type { RelayConfig } from '../config.ts';
import { asMailroomError, MailroomError } from '../errors.ts';
import type { RandomBytes } from '../store/event-id.ts';
import {
  createTransitions,
  type RelayPath,
  type TransitionDeps,
  type Transitions,
} from '../store/outbox-transitions.ts';
import { backoffMs } from '../store/retry.ts';
import { type Table, UPDATE_EACH_MAX } from '../store/table.ts';
import type { Telemetry } from '../telemetry.ts';
import type { BusBreaker } from './bus-breaker.ts';
import { batchEntries } from './entry-batches.ts';
import type { PendingRow } from './pending-row.ts';
import { faultOfCall, faultOfEntry } from './publish-fault.ts';

/**
 * The core of the relay, used by both of its paths: claim, publish, mark, and what becomes of a failure.
 *
 *     born                       claim                      publish      mark
 *      |--- leased to the stream ---|                          |          |
 *      |<------- bornLease -------->|<------ claimLease ------>|          |
 *                                   leaseUntil moves           PutEvents  PENDING -> PUBLISHED
 *
 * Publish comes first and mark second: a crash in between publishes again under the same event id, which the
 * inbox absorbs. The other order loses the event.
 */
export interface Relay extends Pick<Transitions, 'claim' | 'release'> {
  /**
   * Publishes rows that are ours, and marks them.
   *
   * @param breaker - what the bus does not take in this pass
   * @param mayPublish - asked for each row right before each call: may it still be published without a claim?
   */
  publish<R extends PendingRow>(
    rows: readonly R[],
    breaker: BusBreaker,
    mayPublish?: (row: R) => boolean,
  ): Promise<PublishReport<R>>;
}

/** What the relay's core needs. */
export interface RelayDeps extends TransitionDeps {
  readonly bus: Bus;
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
 * Calls of the stream path under way at once: the ten that 100 records make, the mapping's default, go out together. It is
 * bound by its CPU from about eight on (`npm run bench -- relay`): more would bring little, and load a bus that is in trouble.
 */
export const CONCURRENCY = 16;

/** How many rows are worked on together: claimed, and published before their lease can end. */
export const GROUP_ROWS = 100;

/** How often one PutEvents call that the bus throttled or failed is tried, while the lease lasts. */
const PUBLISH_TRIES = 3;

/** What became of the rows. One that the event's own failure kept from being published is in none of the lists. */
interface PublishReport<R extends PendingRow> {
  readonly published: R[];
  /** Published, and still PENDING in the table. */
  readonly unmarked: R[];
  /** The bus failed, or the right to use it. */
  readonly failed: Failure<R>[];
  /** Not tried, because the breaker is open. */
  readonly skipped: R[];
  /** Not tried, because it may not be published under the lease that it has. */
  readonly leaseTooShort: R[];
}

interface Failure<R> {
  readonly row: R;
  readonly error: MailroomError;
}

/** What one PutEvents call came to. */
interface Answer<R> {
  readonly published: R[];
  /** The event itself was refused. */
  readonly refused: Failure<R>[];
  /** Something else went wrong with this one entry: its attempt counts. */
  readonly failed: Failure<R>[];
  /** The bus failed: no attempt counts. */
  readonly busFailed: Failure<R>[];
  /** The right to publish is missing: no attempt counts, and trying again at once cannot help. */
  readonly denied: Failure<R>[];
  readonly leaseTooShort: R[];
}

/** Makes the relay's core for one path. */
export function createRelay(deps: RelayDeps, path: RelayPath): Relay {
  const { config, bus, clock, random, telemetry } = deps;
  const { claim, mark, fail, release } = createTransitions(deps, path);
  // The bus has its own limit: while its calls hang, what is published already can still be marked.
  const limited = pLimit(deps.concurrency);

  const outlastsPublish = (row: PendingRow) =>
    row.leaseUntil - clock.now() > config.publishTimeoutMs + CLOCK_SKEW_MS;

  async function publish<R extends PendingRow>(
    rows: readonly R[],
    breaker: BusBreaker,
    mayPublish: (row: R) => boolean = () => true,
  ): Promise<PublishReport<R>> {
    const report: PublishReport<R> = {
      published: [],
      unmarked: [],
      failed: [],
      skipped: [],
      leaseTooShort: [],
    };
    const ours = (row: R) => mayPublish(row) && outlastsPublish(row);
    const waiting: R[] = []; // published, to be marked 25 at a time
    await Promise.all(
      batchEntries(rows).map(async (batch) => {
        waiting.push(...(await limited(() => publishBatch(batch, ours, breaker, report))));
        while (waiting.length >= UPDATE_EACH_MAX) {
          report.unmarked.push(...(await mark(waiting.splice(0, UPDATE_EACH_MAX))));
        }
      }),
    );
    report.unmarked.push(...(await mark(waiting)));
    return report;
  }

  /** One PutEvents call, tried again while that helps. Returns what it published. */
  async function publishBatch<R extends PendingRow>(
    batch: readonly R[],
    ours: (row: R) => boolean,
    breaker: BusBreaker,
    report: PublishReport<R>,
  ): Promise<R[]> {
    const published: R[] = [];
    const denied: Failure<R>[] = [];
    let left: Failure<R>[] = [];
    report.skipped.push(...batch.filter((row) => breaker.isOpen(row.entry.source)));
    let rows = batch.filter((row) => !breaker.isOpen(row.entry.source));
    for (let attempt = 1; ; attempt += 1) {
      const sent = rows.filter(ours);
      report.leaseTooShort.push(...rows.filter((row) => !sent.includes(row)));
      left = [];
      if (sent.length === 0) break;
      const answer = await putEntries(sent, ours);
      published.push(...answer.published);
      report.leaseTooShort.push(...answer.leaseTooShort);
      for (const { row, error } of answer.refused) await fail(row, error, true);
      for (const { row, error } of answer.failed) await fail(row, error, false);
      denied.push(...answer.denied);
      left = answer.busFailed;
      if (left.length === 0 || attempt >= PUBLISH_TRIES) break;
      telemetry.count('PublishRetries');
      rows = left.map(({ row }) => row);
      await clock.sleep(backoffMs(attempt, 100, 1_000, random));
    }
    report.published.push(...published);
    const failed = [...denied, ...left];
    report.failed.push(...failed);
    breaker.record({ took: sources(published), failed: sources(failed.map(({ row }) => row)) });
    if (failed[0] !== undefined) reportBusFailure(failed[0].error, failed.length);
    return published;
  }

  /**
   * Calls PutEvents and looks at every entry's result. One invalid entry can fail a whole call, and so can one source that may
   * not be published: before anything is judged, the first is made again for each entry, the second for each source.
   */
  async function putEntries<R extends PendingRow>(
    rows: readonly R[],
    ours: (row: R) => boolean,
  ): Promise<Answer<R>> {
    const answer = emptyAnswer<R>();
    try {
      const results = await bus.put(
        rows.map((row) => row.entry),
        config.publishTimeoutMs,
      );
      rows.forEach((row, i) => {
        const result = results[i] ?? {
          ok: false,
          code: 'NoAnswer',
          message: 'PutEvents did not answer for this entry',
        };
        if (result.ok) {
          answer.published.push(row);
          return;
        }
        const fault = faultOfEntry(result.code);
        const failed = { row, error: new MailroomError(result.code, result.message) };
        if (fault === 'event') answer.refused.push(failed);
        else if (fault === 'unknown') answer.failed.push(failed);
        else if (fault === 'access') answer.denied.push(failed);
        else answer.busFailed.push(failed);
      });
    } catch (thrown) {
      const fault = faultOfCall(thrown);
      if (fault === 'event' && rows.length > 1)
        return inParts(
          rows.map((row) => [row]),
          ours,
        );
      const ofSources = bySource(rows);
      if (fault === 'access' && ofSources.length > 1) return inParts(ofSources, ours);
      const failures = rows.map((row) => ({ row, error: asMailroomError(thrown) }));
      if (fault === 'event') answer.refused.push(...failures);
      else (fault === 'access' ? answer.denied : answer.busFailed).push(...failures);
    }
    return answer;
  }

  /** A call for each part, one after the other. A lease may run short meanwhile. */
  async function inParts<R extends PendingRow>(
    parts: readonly (readonly R[])[],
    ours: (row: R) => boolean,
  ): Promise<Answer<R>> {
    const whole = emptyAnswer<R>();
    for (const part of parts) {
      const sent = part.filter(ours);
      whole.leaseTooShort.push(...part.filter((row) => !sent.includes(row)));
      if (sent.length === 0) continue;
      const answer = await putEntries(sent, ours);
      whole.published.push(...answer.published);
      whole.refused.push(...answer.refused);
      whole.failed.push(...answer.failed);
      whole.busFailed.push(...answer.busFailed);
      whole.denied.push(...answer.denied);
      whole.leaseTooShort.push(...answer.leaseTooShort);
    }
    return whole;
  }

  function reportBusFailure(error: MailroomError, entries: number): void {
    telemetry.count('BusFailures');
    telemetry.log.error(
      'The bus, or the right to publish to it, failed; nothing is lost, no attempt is counted',
      { entries, error },
    );
  }

  return { claim, publish, release };
}

function sources(rows: readonly PendingRow[]): ReadonlySet<string> {
  return new Set(rows.map((row) => row.entry.source));
}

function bySource<R extends PendingRow>(rows: readonly R[]): R[][] {
  return [...sources(rows)].map((source) => rows.filter((row) => row.entry.source === source));
}

function emptyAnswer<R>(): Answer<R> {
  return { published: [], refused: [], failed: [], busFailed: [], denied: [], leaseTooShort: [] };
}
