import type { Clock } from '../../base/clock.ts';
import type { RelayConfig } from '../../base/config.ts';
import type { MailroomErrorCode } from '../../base/error-codes.ts';
import { asMailroomError, isMailroomError, type MailroomError } from '../../base/errors.ts';
import type { Telemetry } from '../../observe/telemetry.ts';
import { failed } from '../../outbox/event-attempts.ts';
import {
  claimed,
  type EventTransition,
  published,
  type RelayPath,
  released,
} from '../../outbox/outbox-transitions.ts';
import type { PendingRow } from '../../outbox/pending-row.ts';
import {
  beforeNextTry,
  countPublished,
  logFailure,
  RECORD_TRIES,
  UNMARKED,
  UNRECORDED,
} from '../../outbox/publish-records.ts';
import { eventIdShard, outboxKeyOf, type RandomBytes } from '../event-id.ts';
import { deadKey } from '../keys.ts';
import type { DeadPointer, OutboxStatus } from '../outbox-row.ts';
import { isRefused, transactWithRetry } from '../retry.ts';
import { SCHEMA } from '../row-schema.ts';
import { ofKnownSchema } from '../row-update.ts';
import {
  type EachResult,
  type EachUpdate,
  type Table,
  type TransactAction,
  UPDATE_EACH_MAX,
  updateAction,
} from '../table.ts';

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
  const updates = await updateRows(context, rows, (row) => claimed(row, clock.now(), config.claimLeaseMs));
  return {
    claimed: updates.flatMap(({ row, set: { leaseUntil = row.leaseUntil }, result }) =>
      result.ok ? { ...row, leaseUntil } : [],
    ),
    failed: updates.flatMap(({ row, result }) => (result.ok || result.refused ? [] : row)),
  };
}

/**
 * Marks published rows. If a mark cannot be written, a relay publishes the event once more; it is never an error for the caller.
 *
 * @returns the rows that could not be marked
 */
export async function markPublished<R extends PendingRow>(
  context: MarkContext,
  rows: readonly R[],
): Promise<R[]> {
  if (rows.length === 0) return [];
  const { clock, config, path, telemetry } = context;
  const mark = published(clock.now(), config.publishedRetentionDays, path);
  countPublished(context, rows);
  // The sweep is the ordinary way of a scheduled event.
  if (path === 'sweep')
    telemetry.count('EventsRescued', rows.filter(({ dueAt }) => dueAt === undefined).length);
  let unmarked = rows;
  for (let attempt = 1; unmarked.length > 0 && attempt <= RECORD_TRIES; attempt += 1) {
    if (attempt > 1) await beforeNextTry(context, attempt - 1);
    const updates = await updateRows(context, unmarked, () => mark);
    const again: R[] = [];
    for (const { row, result } of updates) {
      const isDone =
        result.ok || (result.refused && (!isOpen(result, mark) || (await markDead(context, row, mark))));
      if (!isDone) again.push(row);
    }
    unmarked = again;
  }
  if (unmarked.length > 0) logFailure(context, UNMARKED, unmarked);
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
  const rows = releases.map((release) => ({ ...release.row, release }));
  await updateRows(context, rows, ({ release: { row, leaseUntil, error } }) =>
    released(row, leaseUntil, error),
  );
}

/**
 * The row became DEAD although it was being published successfully. A producer may not remove the pointer: it leaves the row as it
 * is, and an operator who requeues it publishes a duplicate.
 *
 * @returns true if nothing is left to do: it was marked, or its state was changed by another writer
 */
async function markDead(context: MarkContext, row: PendingRow, mark: EventTransition): Promise<boolean> {
  if (context.path === 'producer') return true;
  try {
    await transactWithRetry(context, leavingDead(row.eventId, mark));
    return true;
  } catch (error) {
    logFailure(context, 'A DEAD event was published but could not be marked', [row], error);
    return isRefused(error);
  }
}

/** Makes a transition of a row as it was read, from the first of its states. */
function updateOf(
  { key, leaseUntil }: PendingRow,
  { from: [status], only, set }: EventTransition,
): EachUpdate {
  return { key, set, when: { status, ...(only === 'held' && { leaseUntil }) } };
}

/** DEAD -> another state: changes the row, unless its schema is newer, and removes its pointer, in one transaction. */
export function leavingDead(eventId: string, { set, clear }: EventTransition): readonly TransactAction[] {
  const when = { status: 'DEAD' satisfies OutboxStatus };
  const { Update } = updateAction({ key: outboxKeyOf(eventId), set, remove: clear, when });
  return [
    { Update: ofKnownSchema(Update) },
    { Delete: { Key: { ...deadKey(eventIdShard(eventId), eventId) } } },
  ];
}

/** The result of one conditional update of a row. */
interface EventUpdate<R> {
  readonly row: R;
  readonly set: EventTransition['set'];
  readonly result: EachResult;
}

/**
 * Updates rows in batches of the maximum size of one call. Every row gets a result, even if the request as a whole failed.
 *
 * @param decide - called for each row when its batch is sent
 */
async function updateRows<R extends PendingRow>(
  { table, telemetry, writes }: MarkContext,
  rows: readonly R[],
  decide: (row: R) => EventTransition,
): Promise<EventUpdate<R>[]> {
  const starts = Array.from(
    { length: Math.ceil(rows.length / UPDATE_EACH_MAX) },
    (_, n) => n * UPDATE_EACH_MAX,
  );
  const update = async (batch: readonly R[]): Promise<EventUpdate<R>[]> => {
    const transitions = batch.map(decide);
    const updates = transitions.map((transition, i) => updateOf(batch[i] as R, transition));
    const results = await table.updateEach(updates).catch((error: unknown) => {
      telemetry.log.warn('A batch of updates failed', { error: error as Error });
      const { code, message } = asMailroomError(error);
      return updates.map(() => ({ ok: false, refused: false, code, message }) as const);
    });
    return batch.map((row, i) => ({ row, set: transitions[i]?.set ?? {}, result: results[i] ?? NO_RESULT }));
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

/** The row that refused a transition is in another of its states: it still has to be made. */
function isOpen(result: EachResult, { from }: EventTransition): boolean {
  return !result.ok && result.refused && from.some((status) => status === result.item?.status);
}

/** Records the event's own failure, under the lease that this relay holds. */
export async function failEvent(
  context: OutboxContext,
  row: PendingRow,
  error: MailroomError,
  refused: boolean,
): Promise<void> {
  const failure = failed({ ...context, now: context.clock.now() }, row, error, refused);
  const { deadAt, lastError = '', fingerprint = '' } = failure.set;
  if (deadAt === undefined) {
    await updateRows(context, [row], () => failure);
    return;
  }
  const pointer: DeadPointer = {
    ...deadKey(eventIdShard(row.eventId), row.eventId),
    schema: SCHEMA,
    deadAt,
    type: row.entry.detailType,
    lastError,
    fingerprint,
  };
  try {
    await transactWithRetry(context, [
      updateAction(updateOf(row, failure)),
      { Put: { Item: { ...pointer } } },
    ]);
    context.telemetry.count('EventsDead');
  } catch (writeError) {
    // Still PENDING under a lease that ends: the sweep reads it again.
    if (!isMailroomError(writeError, 'TRANSACTION_CANCELLED'))
      logFailure(context, UNRECORDED, [row], writeError);
  }
}
