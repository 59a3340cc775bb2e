import type { Clock } from '../base/clock.ts';
import type { RelayConfig } from '../base/config.ts';
import type { MailroomErrorCode } from '../base/error-codes.ts';
import { asMailroomError, isMailroomError, type MailroomError } from '../base/errors.ts';
import type { Telemetry } from '../observe/telemetry.ts';
import { eventIdShard, eventIdTime, type RandomBytes } from '../store/event-id.ts';
import { deadKey } from '../store/keys.ts';
import type { DeadPointer } from '../store/outbox-row.ts';
import { backoffMs, isRefused, transactWithRetry } from '../store/retry.ts';
import { expiresAt } from '../store/row-expiry.ts';
import { SCHEMA } from '../store/row-schema.ts';
import {
  type EachResult,
  type EachUpdate,
  type Table,
  UPDATE_EACH_MAX,
  updateAction,
} from '../store/table.ts';
import { causeOf, eventFailure, logFailure } from './event-attempts.ts';
import { leavingDead } from './outbox-operator.ts';
import { leaseOf, type PendingRow } from './pending-row.ts';

/** The two relays. */
export type RelayPath = 'stream' | 'sweep';

/** The maximum number of tries of a batch of marks. The sweep publishes rows again that are left PENDING. */
const MARK_TRIES = 5;

/** A limit of `p-limit`, whose own types CommonJS declarations cannot import: the package is ES modules only. */
export interface CallLimit {
  <T>(call: () => Promise<T>): Promise<T>;
  /** The maximum number of calls at a time. */
  concurrency: number;
}

/** Dependencies of a mark. */
export interface MarkContext {
  readonly config: Pick<RelayConfig, 'publishedRetentionDays'>;
  /** The publisher, as stored in the row. */
  readonly path: RelayPath | 'producer';
  readonly table: Table;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly telemetry: Telemetry;
  /** Limits concurrent calls to the table. */
  readonly writes: CallLimit;
}

/** Dependencies of a relay's transitions of outbox rows. */
export interface OutboxContext extends MarkContext {
  readonly config: RelayConfig;
  readonly path: RelayPath;
}

/**
 * Claims rows on the condition that they are PENDING under the lease that was read. `claimed` rows have a new lease, held by this
 * relay. The outcome of `failed` rows is unknown; this relay may hold them, and they are due again when that lease ends.
 */
export async function claimEvents<R extends PendingRow>(
  context: OutboxContext,
  rows: readonly R[],
): Promise<{ claimed: R[]; failed: R[] }> {
  const { clock, config } = context;
  const updates = await updateRows(context, rows, (row) => ({
    set: { leaseUntil: leaseOf(row, clock.now() + config.claimLeaseMs) },
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
 * Marks published rows: PENDING -> PUBLISHED, under any lease, because the event *was* published. If a mark cannot be written, a
 * relay publishes the event once more; it is never an error for the caller.
 *
 * @returns the rows that could not be marked
 */
export async function markPublished<R extends PendingRow>(
  context: MarkContext,
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
  // The sweep is the ordinary way of a scheduled event.
  if (path === 'sweep')
    telemetry.count('EventsRescued', rows.filter(({ dueAt }) => dueAt === undefined).length);
  for (const row of rows) telemetry.duration('PublishLatency', publishedAt - eventIdTime(row.eventId));
  let unmarked = rows;
  for (let attempt = 1; unmarked.length > 0 && attempt <= MARK_TRIES; attempt += 1) {
    if (attempt > 1) await clock.sleep(backoffMs(attempt - 1, 50, 1_000, random));
    const updates = await updateRows(context, unmarked, () => ({ set, when: { status: 'PENDING' } }));
    const again: R[] = [];
    for (const { row, result } of updates) {
      const isDone =
        result.ok || (result.refused && (!wasDead(result) || (await markDead(context, row, set))));
      if (!isDone) again.push(row);
    }
    unmarked = again;
  }
  if (unmarked.length > 0)
    logFailure(
      context,
      'Events were published but not marked; a relay will publish them once more',
      unmarked,
    );
  return [...unmarked];
}

/** A row to release, and the time at which it is due again. */
export interface Release {
  readonly row: PendingRow;
  /** The time at which it is due again, epoch milliseconds. */
  readonly leaseUntil: number;
  /** Stored in the row as its last error. @default none */
  readonly error?: unknown;
}

/** Releases rows that this relay holds, so that they are due at `leaseUntil`. No attempt is counted. */
export async function releaseEvents(context: OutboxContext, releases: readonly Release[]): Promise<void> {
  const rows = releases.map((release) => ({ ...release, key: release.row.key }));
  await updateRows(context, rows, ({ row, leaseUntil, error }) => ({
    set: { leaseUntil: leaseOf(row, leaseUntil), ...(error === undefined ? {} : causeOf(error)) },
    when: held(row),
  }));
}

/** The row is still PENDING under the lease that was read. */
function held({ leaseUntil }: PendingRow) {
  return { status: 'PENDING', leaseUntil };
}

/**
 * DEAD -> PUBLISHED: the row became DEAD although it was being published successfully. A producer may not remove the pointer: it
 * leaves the row as it is, and an operator who requeues it publishes a duplicate.
 *
 * @returns true if nothing is left to do: it was marked, or its state was changed by another writer
 */
async function markDead(context: MarkContext, row: PendingRow, set: EachUpdate['set']): Promise<boolean> {
  if (context.path === 'producer') return true;
  try {
    await transactWithRetry(context, leavingDead(row.eventId, { set }));
    return true;
  } catch (error) {
    logFailure(context, 'A DEAD event was published but could not be marked', [row], error);
    return isRefused(error);
  }
}

/** The result of one conditional update of a row. */
interface EventUpdate<R> extends Omit<EachUpdate, 'key'> {
  readonly row: R;
  readonly result: EachResult;
}

/**
 * Updates rows in batches of the maximum size of one call. Every row gets a result, even if the request as a whole failed.
 *
 * @param change - called for each row when its batch is sent
 */
async function updateRows<R extends Pick<PendingRow, 'key'>>(
  { table, telemetry, writes }: MarkContext,
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
  code: 'NO_ANSWER' satisfies MailroomErrorCode,
  message: 'The table returned no result for this row.',
} as const;

function wasDead(result: EachResult): boolean {
  return !result.ok && result.refused && result.item?.status === 'DEAD';
}

/**
 * Records the event's own failure: one more attempt and a backoff, or DEAD if the event itself was refused or its attempts are
 * exhausted. Conditional on the lease that this relay holds, so that it does not interfere with the next holder.
 */
export async function failEvent(
  context: OutboxContext,
  row: PendingRow,
  error: MailroomError,
  refused: boolean,
): Promise<void> {
  const { clock, telemetry } = context;
  const now = clock.now();
  const { attempts, dead, retryMs, cause } = eventFailure(context, row, error, refused);
  if (!dead) {
    const leaseUntil = leaseOf(row, now + retryMs);
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
      logFailure(context, 'The failure of an event could not be recorded', [row], writeError);
  }
}
