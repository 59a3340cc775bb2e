import pMap from 'p-map';
import type { Clock } from './clock.ts';
import type { RelayConfig } from './config.ts';
import {
  errorMessage,
  fingerprint,
  isConditionFailed,
  isTransactionCancelled,
  MailroomError,
} from './errors.ts';
import type { Bus, BusEntry } from './event-bus.ts';
import { PUT_EVENTS_BYTES_MAX, PUT_EVENTS_ENTRIES_MAX } from './event-bus.ts';
import { eventIdShard, eventIdTime, isEventId, type RandomBytes } from './event-id.ts';
import { faultOfCall, faultOfEntry } from './publish-fault.ts';
import { backoffMs, transactWithRetry } from './retry.ts';
import { type DeadPointer, deadKey, expiresAt, type OutboxRow, SCHEMA } from './rows.ts';
import {
  type EachResult,
  type EachUpdate,
  type Item,
  type Key,
  type Table,
  UPDATE_EACH_MAX,
} from './table.ts';
import type { Telemetry } from './telemetry.ts';

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
export interface RelayDeps {
  readonly config: RelayConfig;
  readonly table: Table;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly telemetry: Telemetry;
}

/** Which path publishes, as it is stored on the row. */
export type RelayPath = 'stream' | 'sweep';

/** A PENDING row as somebody read it. */
export interface PendingRow {
  readonly key: Key;
  readonly eventId: string;
  /** The lease as it was read: the value that a claim or a failure update compares with. */
  readonly leaseUntil: number;
  readonly attempts: number;
  readonly entry: BusEntry;
}

/** How long before the end of a lease the last publish may be over, against clocks that differ. */
export const LEASE_MARGIN_MS = 2_000;

/** How many PutEvents calls and how many batched updates are under way at once. */
const CONCURRENCY = 8;

/** How often one PutEvents call that the bus throttled or failed is tried, while the lease lasts. */
const PUBLISH_TRIES = 3;

/** How often a batch of marks is tried. What is left PENDING is published again by the sweep. */
const MARK_TRIES = 5;

/** Backoff of a row whose own publish failed: from 5 s to 15 min. */
const RETRY_BASE_MS = 5_000;
const RETRY_CAP_MS = 900_000;

/** What one call of {@link Relay.publish} did. */
export interface PublishReport {
  readonly published: readonly PendingRow[];
  /** Not published, lease still as given: the bus failed, or no time was left on the lease. */
  readonly unpublished: readonly PendingRow[];
  /** Present when the bus, or the right to use it, failed: stop, whoever goes on would fail too. */
  readonly busError?: MailroomError | undefined;
}

export interface Relay {
  /**
   * Claims rows: `PENDING`, and the lease as it was read. Returns those that are ours now, with their new lease.
   * `failed` are those of which the table did not say; they may be ours, and come back when that lease ends.
   */
  claim(rows: readonly PendingRow[]): Promise<{ claimed: PendingRow[]; failed: PendingRow[] }>;
  /**
   * Publishes rows that are ours, and marks them.
   *
   * @param mayPublish - asked for each row right before each call: may it still be published without a claim?
   */
  publish(rows: readonly PendingRow[], mayPublish?: (row: PendingRow) => boolean): Promise<PublishReport>;
  /** Lets go of rows that are ours, so that they are due at `leaseUntil`. No attempt is counted. */
  release(
    rows: readonly { readonly row: PendingRow; readonly leaseUntil: number }[],
    error?: unknown,
  ): Promise<void>;
}

/** Makes the relay's core for one path. */
export function createRelay(deps: RelayDeps, path: RelayPath): Relay {
  const { config, table, bus, clock, random, telemetry } = deps;

  const outlastsPublish = (row: PendingRow) =>
    row.leaseUntil - clock.now() > config.publishTimeoutMs + LEASE_MARGIN_MS;

  const claim: Relay['claim'] = async (rows) => {
    const claimed: PendingRow[] = [];
    const failed: PendingRow[] = [];
    await inBatches(rows, async (batch) => {
      const leaseUntil = clock.now() + config.claimLeaseMs;
      const results = await updateEach(
        batch.map((row) => ({
          key: row.key,
          set: { leaseUntil },
          when: { status: 'PENDING', leaseUntil: row.leaseUntil },
        })),
      );
      batch.forEach((row, i) => {
        const result = results[i];
        if (result?.ok) claimed.push({ ...row, leaseUntil });
        else if (!result?.refused) failed.push(row);
      });
    });
    return { claimed, failed };
  };

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

  /**
   * Marks published rows: PENDING -> PUBLISHED, whoever holds the lease, because it *was* published. A mark that
   * cannot be made is left to the sweep, which publishes once more; it is never an error of the caller.
   */
  async function mark(rows: readonly PendingRow[]): Promise<void> {
    if (rows.length === 0) return;
    const publishedAt = clock.now();
    const set = {
      status: 'PUBLISHED',
      publishedAt,
      publishedBy: path,
      expiresAt: expiresAt(publishedAt, config.publishedRetentionDays),
    };
    telemetry.count('EventsPublished', rows.length);
    if (path === 'sweep') telemetry.count('EventsRescued', rows.length);
    for (const row of rows) telemetry.duration('PublishLatency', publishedAt - eventIdTime(row.eventId));
    await inBatches(rows, async (batch) => {
      let left = batch;
      for (let attempt = 1; left.length > 0 && attempt <= MARK_TRIES; attempt += 1) {
        if (attempt > 1) await clock.sleep(backoffMs(attempt - 1, 50, 1_000, random));
        const results = await updateEach(left.map(({ key }) => ({ key, set, when: { status: 'PENDING' } })));
        const dead = left.filter((_, i) => refusedAs(results[i], 'DEAD'));
        for (const row of dead) await markDead(row, set);
        left = left.filter((_, i) => results[i]?.ok === false && !results[i].refused);
      }
      if (left.length > 0) {
        telemetry.log.error('Published, but not marked: the sweep will publish once more', {
          eventIds: left.map((row) => row.eventId),
        });
      }
    });
  }

  /** A row went DEAD while it was being published after all: it is PUBLISHED, and its pointer goes. */
  async function markDead(row: PendingRow, set: Item): Promise<void> {
    const names = Object.keys(set);
    try {
      await transactWithRetry({ table, clock, random }, [
        {
          Update: {
            Key: { ...row.key },
            UpdateExpression: `SET ${names.map((name) => `#${name} = :${name}`).join(', ')}`,
            ConditionExpression: '#status = :DEAD',
            ExpressionAttributeNames: Object.fromEntries(names.map((name) => [`#${name}`, name])),
            ExpressionAttributeValues: {
              ...Object.fromEntries(names.map((name) => [`:${name}`, set[name]])),
              ':DEAD': 'DEAD',
            },
          },
        },
        { Delete: { Key: { ...deadKey(eventIdShard(row.eventId), row.eventId) } } },
      ]);
    } catch (error) {
      if (!isTransactionCancelled(error))
        logFailure('A DEAD event was published but could not be marked', [row], error);
    }
  }

  /**
   * The event's own failure: one attempt more and a backoff; or DEAD when the event itself was refused or its
   * attempts are spent. Conditional on the lease we hold, so that whoever holds it now is not disturbed.
   */
  async function fail(row: PendingRow, error: MailroomError, refused: boolean): Promise<void> {
    const attempts = row.attempts + 1;
    const dead = refused || attempts >= config.maxAttempts;
    const now = clock.now();
    telemetry.count('EventsRefused', refused ? 1 : 0);
    logFailure(dead ? 'Event is DEAD' : 'Event could not be published', [row], error);
    const cause = { lastError: errorMessage(error), fingerprint: `relay ${fingerprint(error)}` };
    try {
      if (!dead) {
        await updateEach([
          {
            key: row.key,
            set: {
              ...cause,
              attempts,
              leaseUntil: now + backoffMs(attempts, RETRY_BASE_MS, RETRY_CAP_MS, random),
            },
            when: { status: 'PENDING', leaseUntil: row.leaseUntil },
          },
        ]);
        return;
      }
      await transactWithRetry({ table, clock, random }, deadTransaction(row, cause, attempts, now));
      telemetry.count('EventsDead');
    } catch (writeError) {
      // Still PENDING under a lease that ends: the sweep comes back to it.
      if (!isTransactionCancelled(writeError) && !isConditionFailed(writeError)) {
        logFailure('The failure of an event could not be written down', [row], writeError);
      }
    }
  }

  const release: Relay['release'] = async (rows, error) => {
    const cause =
      error === undefined
        ? {}
        : { lastError: errorMessage(error), fingerprint: `relay ${fingerprint(error)}` };
    await inBatches(rows, async (batch) => {
      await updateEach(
        batch.map(({ row, leaseUntil }) => ({
          key: row.key,
          set: { ...cause, leaseUntil },
          when: { status: 'PENDING', leaseUntil: row.leaseUntil },
        })),
      );
    });
  };

  /** `updateEach` that answers for each row even when the request as a whole failed. */
  async function updateEach(updates: readonly EachUpdate[]): Promise<EachResult[]> {
    try {
      return await table.updateEach(updates);
    } catch (error) {
      telemetry.log.warn('A batch of updates failed', { error: error as Error });
      const { code, message } = asMailroomError(error);
      return updates.map(() => ({ ok: false, refused: false, code, message }));
    }
  }

  function reportBusFailure(error: MailroomError, rows: readonly PendingRow[]): void {
    telemetry.count('BusFailures');
    logFailure(
      'The bus, or the right to publish to it, failed; nothing is lost, no attempt is counted',
      rows,
      error,
    );
  }

  function logFailure(message: string, rows: readonly PendingRow[], error: unknown): void {
    telemetry.log.error(message, { eventIds: rows.map((row) => row.eventId), error: error as Error });
  }

  return { claim, publish, release };
}

/** PENDING -> DEAD, with the pointer that makes it findable, in one transaction. */
function deadTransaction(
  row: PendingRow,
  cause: { lastError: string; fingerprint: string },
  attempts: number,
  now: number,
) {
  const pointer: DeadPointer = {
    ...deadKey(eventIdShard(row.eventId), row.eventId),
    schema: SCHEMA,
    deadAt: now,
    type: row.entry.detailType,
    ...cause,
  };
  return [
    {
      Update: {
        Key: { ...row.key },
        UpdateExpression:
          'SET #status = :DEAD, attempts = :attempts, deadAt = :now, lastError = :lastError, fingerprint = :fingerprint',
        ConditionExpression: '#status = :PENDING AND leaseUntil = :held',
        ExpressionAttributeNames: { '#status': 'status' },
        ExpressionAttributeValues: {
          ':DEAD': 'DEAD',
          ':PENDING': 'PENDING',
          ':held': row.leaseUntil,
          ':attempts': attempts,
          ':now': now,
          ':lastError': cause.lastError,
          ':fingerprint': cause.fingerprint,
        },
      },
    },
    { Put: { Item: { ...pointer } } },
  ];
}

/**
 * Views an item as a PENDING outbox row, whoever wrote it. A row without what a publish needs keeps what it has:
 * PutEvents refuses it, and it ends DEAD where it can be seen.
 *
 * @returns `undefined` when the item is no outbox row at all, or is not PENDING
 */
export function pendingRow(item: Item): PendingRow | undefined {
  const row = item as Partial<OutboxRow>;
  const eventId = typeof row.SK === 'string' ? row.SK.slice('EVENT#'.length) : undefined;
  if (typeof row.PK !== 'string' || typeof row.SK !== 'string' || !isEventId(eventId)) return undefined;
  if (row.status !== 'PENDING' || typeof row.leaseUntil !== 'number') return undefined;
  return {
    key: { PK: row.PK, SK: row.SK },
    eventId,
    leaseUntil: row.leaseUntil,
    attempts: typeof row.attempts === 'number' ? row.attempts : 0,
    entry: {
      source: String(row.source ?? ''),
      detailType: String(row.type ?? ''),
      detail: String(row.envelope ?? ''),
      traceHeader: row.traceId,
    },
  };
}

/** What an entry's time counts in its size (user guide, "Calculating PutEvents event entry size"). */
const ENTRY_TIME_BYTES = 14;

/** Splits rows into PutEvents calls, in order, by count and by bytes. */
export function batchEntries(rows: readonly PendingRow[]): PendingRow[][] {
  const batches: PendingRow[][] = [];
  let bytesLeft = 0;
  for (const row of rows) {
    const bytes = entryBytes(row.entry);
    const last = batches.at(-1);
    if (last === undefined || last.length >= PUT_EVENTS_ENTRIES_MAX || bytes > bytesLeft) {
      batches.push([row]);
      bytesLeft = PUT_EVENTS_BYTES_MAX - 1 - bytes;
    } else {
      last.push(row);
      bytesLeft -= bytes;
    }
  }
  return batches;
}

/** The size of an entry as EventBridge counts it, and its trace header, to be on the safe side. */
function entryBytes(entry: BusEntry): number {
  return (
    ENTRY_TIME_BYTES +
    Buffer.byteLength(entry.source) +
    Buffer.byteLength(entry.detailType) +
    Buffer.byteLength(entry.detail) +
    Buffer.byteLength(entry.traceHeader ?? '')
  );
}

async function inBatches<T>(
  items: readonly T[],
  work: (batch: readonly T[]) => Promise<void>,
): Promise<void> {
  const batches: T[][] = [];
  for (let i = 0; i < items.length; i += UPDATE_EACH_MAX) batches.push(items.slice(i, i + UPDATE_EACH_MAX));
  await pMap(batches, work, { concurrency: CONCURRENCY });
}

function refusedAs(result: EachResult | undefined, status: string): boolean {
  return result?.ok === false && result.refused && result.item?.status === status;
}

function asMailroomError(error: unknown): MailroomError {
  if (error instanceof MailroomError) return error;
  const name = error instanceof Error ? error.name : 'UnknownError';
  return new MailroomError(name, errorMessage(error), { cause: error });
}
