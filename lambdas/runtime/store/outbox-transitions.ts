import pLimit from 'p-limit';
import type { Clock } from '../clock.ts';
import type { RelayConfig } from '../config.ts';
import {
  asMailroomError,
  errorMessage,
  fingerprint,
  isConditionFailed,
  isTransactionCancelled,
  type MailroomError,
} from '../errors.ts';
import { groupsOf } from '../relay/entry-batches.ts';
import type { PendingRow } from '../relay/pending-row.ts';
import type { Telemetry } from '../telemetry.ts';
import { eventIdShard, eventIdTime, type RandomBytes } from './event-id.ts';
import { backoffMs, transactWithRetry } from './retry.ts';
import { type DeadPointer, deadKey, expiresAt, SCHEMA } from './rows.ts';
import { type EachResult, type EachUpdate, type Item, type Table, UPDATE_EACH_MAX } from './table.ts';

/** Which path publishes, as it is stored on the row. */
export type RelayPath = 'stream' | 'sweep';

/** How often a batch of marks is tried. What is left PENDING is published again by the sweep. */
const MARK_TRIES = 5;

/** Backoff of a row whose own publish failed: from 5 s to 15 min. */
const RETRY_BASE_MS = 5_000;
const RETRY_CAP_MS = 900_000;

/** What the transitions need. */
export interface TransitionDeps {
  readonly config: RelayConfig;
  readonly table: Table;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly telemetry: Telemetry;
  /** How many calls to the table are under way at once. */
  readonly concurrency: number;
}

/** What becomes of outbox rows: each state transition of a PENDING row but its birth. */
export interface Transitions {
  /**
   * Claims rows: `PENDING`, and the lease as it was read. Returns those that are ours now, with their new lease.
   * `failed` are those of which the table did not say; they may be ours, and come back when that lease ends.
   */
  claim<R extends PendingRow>(rows: readonly R[]): Promise<{ claimed: R[]; failed: R[] }>;
  /**
   * Marks published rows: PENDING -> PUBLISHED, whoever holds the lease, because it *was* published. A mark that
   * cannot be made is left to the sweep, which publishes once more; it is never an error of the caller.
   *
   * @returns the rows that could not be marked
   */
  mark<R extends PendingRow>(rows: readonly R[]): Promise<R[]>;
  /**
   * The event's own failure: one attempt more and a backoff; or DEAD when the event itself was refused or its
   * attempts are spent. Conditional on the lease we hold, so that whoever holds it now is not disturbed.
   */
  fail(row: PendingRow, error: MailroomError, refused: boolean): Promise<void>;
  /** Lets go of rows that are ours, so that they are due at `leaseUntil`. No attempt is counted. */
  release(
    rows: readonly {
      readonly row: PendingRow;
      readonly leaseUntil: number;
      /** Why, to be found on the row. */
      readonly error?: unknown;
    }[],
  ): Promise<void>;
}

/** Makes the transitions for one path. */
export function createTransitions(deps: TransitionDeps, path: RelayPath): Transitions {
  const { config, table, clock, random, telemetry } = deps;
  const limited = pLimit(deps.concurrency);

  const claim = async <R extends PendingRow>(rows: readonly R[]): Promise<{ claimed: R[]; failed: R[] }> => {
    const claimed: R[] = [];
    const failed: R[] = [];
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

  const mark = async <R extends PendingRow>(rows: readonly R[]): Promise<R[]> => {
    if (rows.length === 0) return [];
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
    const unmarked: R[] = [];
    await inBatches(rows, async (batch) => {
      unmarked.push(...(await markBatch(batch, set)));
    });
    if (unmarked.length > 0)
      logFailure('Published, but not marked: the sweep will publish once more', unmarked);
    return unmarked;
  };

  async function markBatch<R extends PendingRow>(batch: readonly R[], set: Item): Promise<readonly R[]> {
    let left = batch;
    for (let attempt = 1; left.length > 0 && attempt <= MARK_TRIES; attempt += 1) {
      if (attempt > 1) await clock.sleep(backoffMs(attempt - 1, 50, 1_000, random));
      const results = await updateEach(left.map(({ key }) => ({ key, set, when: { status: 'PENDING' } })));
      const again: R[] = [];
      for (const [i, row] of left.entries()) {
        const result = results[i];
        const settled = result?.ok || (result?.refused && (!wasDead(result) || (await markDead(row, set))));
        if (!settled) again.push(row);
      }
      left = again;
    }
    return left;
  }

  /**
   * A row went DEAD while it was being published after all: it is PUBLISHED, and its pointer goes.
   *
   * @returns whether it is settled: done, or somebody else has changed its state
   */
  async function markDead(row: PendingRow, set: Item): Promise<boolean> {
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
      return true;
    } catch (error) {
      logFailure('A DEAD event was published but could not be marked', [row], error);
      return isTransactionCancelled(error) && error.reasons[0]?.code === 'ConditionalCheckFailed';
    }
  }

  async function fail(row: PendingRow, error: MailroomError, refused: boolean): Promise<void> {
    const attempts = row.attempts + 1;
    const dead = refused || attempts >= config.maxAttempts;
    const now = clock.now();
    telemetry.count('EventsRefused', refused ? 1 : 0);
    logFailure(dead ? 'Event is DEAD' : 'Event could not be published', [row], error);
    const cause = causeOf(error);
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

  const release: Transitions['release'] = (rows) =>
    inBatches(rows, async (batch) => {
      await updateEach(
        batch.map(({ row, leaseUntil, error }) => ({
          key: row.key,
          set: { leaseUntil, ...(error === undefined ? {} : causeOf(error)) },
          when: { status: 'PENDING', leaseUntil: row.leaseUntil },
        })),
      );
    });

  /** Works in batches of what one call takes, each when its turn has come. */
  async function inBatches<T>(
    items: readonly T[],
    work: (batch: readonly T[]) => Promise<void>,
  ): Promise<void> {
    await Promise.all(Array.from(groupsOf(items, UPDATE_EACH_MAX), (batch) => limited(() => work(batch))));
  }

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

  function logFailure(message: string, rows: readonly PendingRow[], error?: unknown): void {
    telemetry.log.error(message, { eventIds: rows.map((row) => row.eventId), error: error as Error });
  }

  return { claim, mark, fail, release };
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

/** What a row keeps of the error that it met. */
function causeOf(error: unknown): { lastError: string; fingerprint: string } {
  return { lastError: errorMessage(error), fingerprint: `relay ${fingerprint(error)}` };
}

function wasDead(result: EachResult): boolean {
  return !result.ok && result.refused && result.item?.status === 'DEAD';
}
