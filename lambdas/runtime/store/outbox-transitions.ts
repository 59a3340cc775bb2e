import type { LimitFunction } from 'p-limit';
import type { Clock } from '../clock.ts';
import type { RelayConfig } from '../config.ts';
import {
  asMailroomError,
  errorMessage,
  fingerprint,
  isMailroomError,
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
  const updates = await updateRows(context, rows, (row) => ({
    set: { leaseUntil: clock.now() + config.claimLeaseMs },
    when: held(row),
  }));
  return {
    claimed: updates.flatMap(({ row, set, result }) =>
      result.ok ? { ...row, leaseUntil: Number(set.leaseUntil) } : [],
    ),
    failed: updates.flatMap(({ row, result }) => (result.ok || result.refused ? [] : row)),
  };
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
  const { clock, config, path, random, telemetry } = context;
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
  let unmarked = rows;
  for (let attempt = 1; unmarked.length > 0 && attempt <= MARK_TRIES; attempt += 1) {
    if (attempt > 1) await clock.sleep(backoffMs(attempt - 1, 50, 1_000, random));
    const updates = await updateRows(context, unmarked, () => ({ set, when: { status: 'PENDING' } }));
    const again: R[] = [];
    for (const { row, result } of updates) {
      const settled =
        result.ok || (result.refused && (!wasDead(result) || (await markDead(context, row, set))));
      if (!settled) again.push(row);
    }
    unmarked = again;
  }
  if (unmarked.length > 0)
    logFailure(context, 'Published, but not marked: the sweep will publish once more', unmarked);
  return [...unmarked];
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
    await updateRows(context, [row], () => ({ set: { ...cause, attempts, leaseUntil }, when: held(row) }));
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
    if (!isMailroomError(writeError, 'TRANSACTION_CANCELLED'))
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
  const rows = releases.map((release) => ({ ...release, key: release.row.key }));
  await updateRows(context, rows, ({ row, leaseUntil, error }) => ({
    set: { leaseUntil, ...(error === undefined ? {} : causeOf(error)) },
    when: held(row),
  }));
}

/** The row is still PENDING under the lease as it was read. */
function held({ leaseUntil }: PendingRow) {
  return { status: 'PENDING', leaseUntil };
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

/** One conditional update of a row, and what became of it. */
interface EventUpdate<R> extends Omit<EachUpdate, 'key'> {
  readonly row: R;
  readonly result: EachResult;
}

/**
 * Updates rows in batches of what one call takes. Each row has a result, even when the request as a whole failed.
 *
 * @param change - called for each row when the turn of its batch has come
 */
async function updateRows<R extends Pick<PendingRow, 'key'>>(
  { table, telemetry, writes }: OutboxContext,
  rows: readonly R[],
  change: (row: R) => Pick<EachUpdate, 'set' | 'when'>,
): Promise<EventUpdate<R>[]> {
  const starts = Array.from(
    { length: Math.ceil(rows.length / UPDATE_EACH_MAX) },
    (_, n) => n * UPDATE_EACH_MAX,
  );
  const update = async (batch: readonly R[]): Promise<EventUpdate<R>[]> => {
    const updates = batch.map((row) => ({ key: row.key, ...change(row) }));
    const results = await table.updateEach(updates).catch((error: unknown) => {
      telemetry.log.warn('A batch of updates failed', { error: error as Error });
      const { code, message } = asMailroomError(error);
      return updates.map(() => ({ ok: false, refused: false, code, message }) as const);
    });
    return batch.map((row, i) => ({ row, ...(updates[i] as EachUpdate), result: results[i] ?? NO_RESULT }));
  };
  const batches = starts.map((start) => rows.slice(start, start + UPDATE_EACH_MAX));
  return (await Promise.all(batches.map((batch) => writes(() => update(batch))))).flat();
}

const NO_RESULT = {
  ok: false,
  refused: false,
  code: 'NoAnswer',
  message: 'The table did not answer',
} as const;

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
