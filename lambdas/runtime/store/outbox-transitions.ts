import type { LimitFunction } from 'p-limit';
import type { Clock } from '../clock.ts';
import type { RelayConfig } from '../config.ts';
import {
  asMailroomError,
  errorMessage,
  fingerprint,
  isTransactionCancelled,
  type MailroomError,
} from '../errors.ts';
import type { Telemetry } from '../telemetry.ts';
import { eventIdShard, eventIdTime, type RandomBytes } from './event-id.ts';
import { leavingDead } from './outbox-decisions.ts';
import type { PendingRow } from './pending-row.ts';
import { backoffMs, isRefused, transactWithRetry } from './retry.ts';
import { type DeadPointer, deadKey, expiresAt, SCHEMA } from './rows.ts';
import { type EachResult, type EachUpdate, type Table, UPDATE_EACH_MAX } from './table.ts';
import { updateAction } from './table-requests.ts';

/** Which of the two relays publishes, as it is stored on the row. */
export type RelayPath = 'stream' | 'sweep';

/** How often a batch of marks is tried. What is left PENDING is published again by the sweep. */
const MARK_TRIES = 5;

/** Backoff of a row whose own publish failed: from 5 s to 15 min. */
const RETRY_BASE_MS = 5_000;
const RETRY_CAP_MS = 900_000;

/** The parts that a relay's transitions of outbox rows share. */
export interface OutboxContext {
  readonly config: RelayConfig;
  readonly path: RelayPath;
  readonly table: Table;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly telemetry: Telemetry;
  /** Limits how many calls to the table are under way at once. */
  readonly writes: LimitFunction;
}

/**
 * Claims rows: PENDING, and the lease as it was read. `claimed` are ours, with their new lease. `failed` are those whose
 * outcome is unknown; they may be ours, and are due again when that lease ends.
 */
export async function claimEvents<R extends PendingRow>(
  context: OutboxContext,
  rows: readonly R[],
): Promise<{ claimed: R[]; failed: R[] }> {
  const { clock, config } = context;
  const claimed: R[] = [];
  const failed: R[] = [];
  await inBatches(context, rows, async (batch) => {
    const leaseUntil = clock.now() + config.claimLeaseMs;
    const results = await updateEach(
      context,
      batch.map((row) => ({ key: row.key, set: { leaseUntil }, when: held(row) })),
    );
    batch.forEach((row, i) => {
      const result = results[i];
      if (result?.ok) claimed.push({ ...row, leaseUntil });
      else if (!result?.refused) failed.push(row);
    });
  });
  return { claimed, failed };
}

/**
 * Marks published rows: PENDING -> PUBLISHED, whoever holds the lease, because it *was* published. A mark that cannot be
 * made is left to the sweep, which publishes once more; it is never an error of the caller.
 *
 * @returns the rows that could not be marked
 */
export async function markPublished<R extends PendingRow>(
  context: OutboxContext,
  rows: readonly R[],
): Promise<R[]> {
  if (rows.length === 0) return [];
  const { clock, config, path, telemetry } = context;
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
  await inBatches(context, rows, async (batch) => {
    unmarked.push(...(await markBatch(context, batch, set)));
  });
  if (unmarked.length > 0)
    logFailure(context, 'Published, but not marked: the sweep will publish once more', unmarked);
  return unmarked;
}

/**
 * Records the event's own failure: one attempt more and a backoff; or DEAD when the event itself was refused or its attempts
 * are exhausted. Conditional on the lease that the relay holds, so that its next holder is not disturbed.
 */
export async function failEvent(
  context: OutboxContext,
  row: PendingRow,
  error: MailroomError,
  refused: boolean,
): Promise<void> {
  const { clock, config, random, telemetry } = context;
  const attempts = row.attempts + 1;
  const dead = refused || attempts >= config.maxAttempts;
  const now = clock.now();
  telemetry.count('EventsRefused', refused ? 1 : 0);
  logFailure(context, dead ? 'Event is DEAD' : 'Event could not be published', [row], error);
  const cause = causeOf(error);
  if (!dead) {
    const leaseUntil = now + backoffMs(attempts, RETRY_BASE_MS, RETRY_CAP_MS, random);
    await updateEach(context, [{ key: row.key, set: { ...cause, attempts, leaseUntil }, when: held(row) }]);
    return;
  }
  const pointer: DeadPointer = {
    ...deadKey(eventIdShard(row.eventId), row.eventId),
    schema: SCHEMA,
    deadAt: now,
    type: row.entry.detailType,
    ...cause,
  };
  try {
    await transactWithRetry(context, [
      updateAction({
        key: row.key,
        set: { ...cause, status: 'DEAD', attempts, deadAt: now },
        when: held(row),
      }),
      { Put: { Item: { ...pointer } } },
    ]);
    telemetry.count('EventsDead');
  } catch (writeError) {
    // Still PENDING under a lease that ends: the sweep reads it again.
    if (!isTransactionCancelled(writeError))
      logFailure(context, 'The failure of an event could not be written down', [row], writeError);
  }
}

/** A row to release, and when it is due again. */
export interface Release {
  readonly row: PendingRow;
  /** Epoch milliseconds. */
  readonly leaseUntil: number;
  /** Stored on the row as its last error. @default none */
  readonly error?: unknown;
}

/** Releases rows that are ours, so that they are due at `leaseUntil`. No attempt is counted. */
export async function releaseEvents(context: OutboxContext, releases: readonly Release[]): Promise<void> {
  await inBatches(context, releases, async (batch) => {
    await updateEach(
      context,
      batch.map(({ row, leaseUntil, error }) => ({
        key: row.key,
        set: { leaseUntil, ...(error === undefined ? {} : causeOf(error)) },
        when: held(row),
      })),
    );
  });
}

/** The row is still PENDING under the lease as it was read. */
function held({ leaseUntil }: PendingRow) {
  return { status: 'PENDING', leaseUntil };
}

async function markBatch<R extends PendingRow>(
  context: OutboxContext,
  batch: readonly R[],
  set: EachUpdate['set'],
): Promise<readonly R[]> {
  const { clock, random } = context;
  let left = batch;
  for (let attempt = 1; left.length > 0 && attempt <= MARK_TRIES; attempt += 1) {
    if (attempt > 1) await clock.sleep(backoffMs(attempt - 1, 50, 1_000, random));
    const results = await updateEach(
      context,
      left.map(({ key }) => ({ key, set, when: { status: 'PENDING' } })),
    );
    const again: R[] = [];
    for (const [i, row] of left.entries()) {
      const result = results[i];
      const settled =
        result?.ok || (result?.refused && (!wasDead(result) || (await markDead(context, row, set))));
      if (!settled) again.push(row);
    }
    left = again;
  }
  return left;
}

/**
 * DEAD -> PUBLISHED: the row went DEAD while it was being published after all.
 *
 * @returns whether it is settled: marked, or its state was changed by somebody else
 */
async function markDead(context: OutboxContext, row: PendingRow, set: EachUpdate['set']): Promise<boolean> {
  try {
    await transactWithRetry(context, leavingDead(row.eventId, { set }));
    return true;
  } catch (error) {
    logFailure(context, 'A DEAD event was published but could not be marked', [row], error);
    return isRefused(error);
  }
}

/** Works in batches of what one call takes, each when its turn has come. */
async function inBatches<T>(
  { writes }: OutboxContext,
  items: readonly T[],
  work: (batch: readonly T[]) => Promise<void>,
): Promise<void> {
  const starts = Array.from(
    { length: Math.ceil(items.length / UPDATE_EACH_MAX) },
    (_, n) => n * UPDATE_EACH_MAX,
  );
  await Promise.all(starts.map((start) => writes(() => work(items.slice(start, start + UPDATE_EACH_MAX)))));
}

/** `updateEach` that answers for each row even when the request as a whole failed. */
async function updateEach(
  { table, telemetry }: OutboxContext,
  updates: readonly EachUpdate[],
): Promise<EachResult[]> {
  try {
    return await table.updateEach(updates);
  } catch (error) {
    telemetry.log.warn('A batch of updates failed', { error: error as Error });
    const { code, message } = asMailroomError(error);
    return updates.map(() => ({ ok: false, refused: false, code, message }));
  }
}

function logFailure(
  { telemetry }: OutboxContext,
  message: string,
  rows: readonly PendingRow[],
  error?: unknown,
): void {
  telemetry.log.error(message, { eventIds: rows.map((row) => row.eventId), error: error as Error });
}

/** What a row keeps of the error that it met. */
function causeOf(error: unknown): { lastError: string; fingerprint: string } {
  return { lastError: errorMessage(error), fingerprint: `relay ${fingerprint(error)}` };
}

function wasDead(result: EachResult): boolean {
  return !result.ok && result.refused && result.item?.status === 'DEAD';
}
