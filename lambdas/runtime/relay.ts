import pMap from 'p-map';
import { batchEntries } from './entry-batches.ts';
import { asMailroomError, MailroomError } from './errors.ts';
import type { Bus } from './event-bus.ts';
import {
  createTransitions,
  type RelayPath,
  type TransitionDeps,
  type Transitions,
} from './outbox-transitions.ts';
import { LEASE_MARGIN_MS, type PendingRow } from './pending-row.ts';
import { faultOfCall, faultOfEntry } from './publish-fault.ts';
import { backoffMs } from './retry.ts';
import { UPDATE_EACH_MAX } from './table.ts';

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
   * @param mayPublish - asked for each row right before each call: may it still be published without a claim?
   */
  publish(rows: readonly PendingRow[], mayPublish?: (row: PendingRow) => boolean): Promise<PublishReport>;
}

export interface RelayDeps extends TransitionDeps {
  readonly bus: Bus;
}

/** How many PutEvents calls are under way at once. */
const CONCURRENCY = 8;

/** How often one PutEvents call that the bus throttled or failed is tried, while the lease lasts. */
const PUBLISH_TRIES = 3;

/** What one call of {@link Relay.publish} did. */
export interface PublishReport {
  readonly published: readonly PendingRow[];
  /** Not published, lease still as given: the bus failed, or no time was left on the lease. */
  readonly unpublished: readonly PendingRow[];
  /** Present when the bus, or the right to use it, failed: stop, whoever goes on would fail too. */
  readonly busError?: MailroomError | undefined;
}

/** Makes the relay's core for one path. */
export function createRelay(deps: RelayDeps, path: RelayPath): Relay {
  const { config, bus, clock, random, telemetry } = deps;
  const { claim, mark, fail, release } = createTransitions(deps, path);

  const outlastsPublish = (row: PendingRow) =>
    row.leaseUntil - clock.now() > config.publishTimeoutMs + LEASE_MARGIN_MS;

  const publish: Relay['publish'] = async (rows, mayPublish = () => true) => {
    const published: PendingRow[] = [];
    const unpublished: PendingRow[] = [];
    const unmarked: PendingRow[] = [];
    let busError: MailroomError | undefined;
    await pMap(
      batchEntries(rows),
      async (batch) => {
        if (busError !== undefined) {
          unpublished.push(...batch);
          return;
        }
        const report = await publishBatch(batch, (row) => mayPublish(row) && outlastsPublish(row));
        busError ??= report.busError;
        published.push(...report.published);
        unpublished.push(...report.unpublished);
        unmarked.push(...report.published);
        while (unmarked.length >= UPDATE_EACH_MAX) await mark(unmarked.splice(0, UPDATE_EACH_MAX));
      },
      { concurrency: CONCURRENCY },
    );
    await mark(unmarked);
    return { published, unpublished, busError };
  };

  /** One PutEvents call, tried again while that helps. */
  async function publishBatch(
    batch: readonly PendingRow[],
    ours: (row: PendingRow) => boolean,
  ): Promise<PublishReport> {
    const published: PendingRow[] = [];
    const unpublished: PendingRow[] = [];
    let left = batch;
    let busError: MailroomError | undefined;
    for (let attempt = 1; left.length > 0; attempt += 1) {
      const sent = left.filter(ours);
      unpublished.push(...left.filter((row) => !sent.includes(row)));
      if (sent.length === 0) break;
      const answer = await putEntries(sent, ours);
      published.push(...answer.published);
      for (const { row, error } of answer.refused) await fail(row, error, true);
      for (const { row, error } of answer.failed) await fail(row, error, false);
      left = answer.busFailed.map(({ row }) => row);
      busError = answer.busFailed[0]?.error;
      if (left.length === 0) break;
      if (attempt >= PUBLISH_TRIES || answer.final) {
        unpublished.push(...left);
        break;
      }
      telemetry.count('PublishRetries');
      await clock.sleep(backoffMs(attempt, 100, 1_000, random));
    }
    if (left.length === 0 || busError === undefined) return { published, unpublished };
    reportBusFailure(busError, left);
    return { published, unpublished, busError };
  }

  interface Answer {
    published: PendingRow[];
    /** The event itself was refused. */
    refused: Failed[];
    /** Something else went wrong with this one entry: its attempt counts. */
    failed: Failed[];
    /** The bus or the configuration failed: no attempt counts. */
    busFailed: Failed[];
    /** Trying again cannot help before somebody mends it. */
    final: boolean;
  }

  interface Failed {
    readonly row: PendingRow;
    readonly error: MailroomError;
  }

  /** Calls PutEvents and looks at every entry's result. A call refused as invalid is made once per entry. */
  async function putEntries(
    rows: readonly PendingRow[],
    ours: (row: PendingRow) => boolean,
  ): Promise<Answer> {
    const answer: Answer = { published: [], refused: [], failed: [], busFailed: [], final: false };
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
        else answer.busFailed.push(failed);
        answer.final ||= fault === 'access';
      });
    } catch (error) {
      const fault = faultOfCall(error);
      const wrapped = asMailroomError(error);
      if (fault === 'event' && rows.length > 1) return oneByOne(rows, ours);
      for (const row of rows) {
        if (fault === 'event') answer.refused.push({ row, error: wrapped });
        else answer.busFailed.push({ row, error: wrapped });
      }
      answer.final = fault === 'access';
    }
    return answer;
  }

  async function oneByOne(rows: readonly PendingRow[], ours: (row: PendingRow) => boolean): Promise<Answer> {
    const whole: Answer = { published: [], refused: [], failed: [], busFailed: [], final: false };
    for (const row of rows) {
      if (!ours(row)) {
        whole.busFailed.push({
          row,
          error: new MailroomError('LEASE_TOO_SHORT', 'No time is left on the lease'),
        });
        continue;
      }
      const one = await putEntries([row], ours);
      whole.published.push(...one.published);
      whole.refused.push(...one.refused);
      whole.failed.push(...one.failed);
      whole.busFailed.push(...one.busFailed);
      whole.final ||= one.final;
    }
    return whole;
  }

  function reportBusFailure(error: MailroomError, rows: readonly PendingRow[]): void {
    telemetry.count('BusFailures');
    telemetry.log.error(
      'The bus, or the right to publish to it, failed; nothing is lost, no attempt is counted',
      {
        eventIds: rows.map((row) => row.eventId),
        error,
      },
    );
  }

  return { claim, publish, release };
}
