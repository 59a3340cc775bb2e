import { type Clock, systemClock } from '../clock.ts';
import { isConditionFailed, isTransactionCancelled, MailroomError } from '../errors.ts';
import {
  eventIdShard,
  eventIdTime,
  mintToken,
  minuteOf,
  outboxKeyOf,
  type RandomBytes,
  systemRandomBytes,
} from '../store/event-id.ts';
import { transactWithRetry } from '../store/retry.ts';
import {
  deadKey,
  expiresAt,
  type OperationRow,
  operationKey,
  SCHEMA,
  type UnsettledPointer,
  unsettledKey,
} from '../store/rows.ts';
import type { Item, Table, TransactAction } from '../store/table.ts';

/** What an operator's interventions need. */
export interface OperationDeps {
  readonly table: Table;
  /** Not ahead of AWS's time by more than clocks may differ: an operator's own machine may be. @default the machine's */
  readonly clock?: Clock | undefined;
  /**
   * Whether `clock` keeps AWS's time. Otherwise a lease counts as passed only after it was seen unchanged for as long as it can
   * last, which needs no clock. @default true
   */
  readonly clockIsTrusted?: boolean | undefined;
  /** @default the machine's */
  readonly random?: RandomBytes | undefined;
}

/** Who decided, and why: stored with what is changed. */
export interface Note {
  readonly by: string;
  readonly reason: string;
}

/** How long a DISCARDED event is kept before TTL may delete it, days. */
const DISCARDED_RETENTION_DAYS = 35;

/** How long it is remembered that something was done, days. */
const OPERATION_RETENTION_DAYS = 400;

/**
 * DEAD -> PENDING: the event is published by the next sweep, with its attempts counted from 0. Its DEAD pointer goes
 * and its minute becomes unsettled in the same transaction: the sweep's ages may have passed it long ago.
 *
 * @param note - stored on the row @default nothing
 * @returns `false` when the event is not DEAD (any more): nothing was changed
 * @throws `BAD_EVENT_ID` when it is no event id, `NO_SUCH_EVENT` when it has no outbox row
 *
 * @example
 * ```ts
 * await requeueDead({ table }, '01a1fba6-4458-7a41-9c37-3f5d2b8e1103', { by: 'ada', reason: 'the bus is back' });
 * ```
 */
export async function requeueDead(deps: OperationDeps, eventId: string, note?: Note): Promise<boolean> {
  const { clock = systemClock, random = systemRandomBytes } = deps;
  const shard = eventIdShard(eventId);
  const pointer: UnsettledPointer = {
    ...unsettledKey(shard, minuteOf(eventIdTime(eventId))),
    schema: SCHEMA,
    token: mintToken(random),
  };
  const noted = note === undefined ? '' : ', requeuedBy = :by, requeuedAt = :now, requeuedReason = :reason';
  return fromDead(deps, eventId, [
    {
      Update: {
        Key: { ...outboxKeyOf(eventId) },
        UpdateExpression: `SET #status = :PENDING, attempts = :none, leaseUntil = :now${noted} REMOVE deadAt`,
        ConditionExpression: '#status = :DEAD',
        ExpressionAttributeNames: { '#status': 'status' },
        ExpressionAttributeValues: {
          ':PENDING': 'PENDING',
          ':DEAD': 'DEAD',
          ':none': 0,
          ':now': clock.now(),
          ...(note && { ':by': note.by, ':reason': note.reason }),
        },
      },
    },
    { Delete: { Key: { ...deadKey(shard, eventId) } } },
    { Put: { Item: { ...pointer } } },
  ]);
}

/**
 * DEAD -> DISCARDED: the event is given up for good, and never published. Its DEAD pointer goes in the same
 * transaction, and its row is kept for 35 days.
 *
 * @returns `false` when the event is not DEAD (any more): nothing was changed
 * @throws `BAD_EVENT_ID` when it is no event id, `NO_SUCH_EVENT` when it has no outbox row
 */
export async function discardDead(deps: OperationDeps, eventId: string, note: Note): Promise<boolean> {
  const { clock = systemClock } = deps;
  const now = clock.now();
  return fromDead(deps, eventId, [
    {
      Update: {
        Key: { ...outboxKeyOf(eventId) },
        UpdateExpression:
          'SET #status = :DISCARDED, discardedBy = :by, discardedAt = :now, discardedReason = :reason, expiresAt = :expiresAt',
        ConditionExpression: '#status = :DEAD',
        ExpressionAttributeNames: { '#status': 'status' },
        ExpressionAttributeValues: {
          ':DISCARDED': 'DISCARDED',
          ':DEAD': 'DEAD',
          ':by': note.by,
          ':now': now,
          ':reason': note.reason,
          ':expiresAt': expiresAt(now, DISCARDED_RETENTION_DAYS),
        },
      },
    },
    { Delete: { Key: { ...deadKey(eventIdShard(eventId), eventId) } } },
  ]);
}

async function fromDead(
  deps: OperationDeps,
  eventId: string,
  actions: readonly TransactAction[],
): Promise<boolean> {
  if (await happens(deps, actions)) return true;
  const { table } = deps;
  const row = await table.get(outboxKeyOf(eventId), { consistent: true });
  if (row !== undefined) return false;
  throw new MailroomError(
    'NO_SUCH_EVENT',
    `There is no outbox row of event ${eventId}: it was never committed here, or was published and has expired. ` +
      `Check the id and the table (${table.name}).`,
  );
}

/**
 * Writes down what an operator is about to change. It is written before the change: one that is interrupted has left
 * its trace. Kept for 400 days.
 *
 * @param operation.command - what, e.g. `message resolve`
 * @param operation.subject - to what, e.g. a consumer and an event id
 */
export async function recordOperation(
  deps: OperationDeps,
  operation: Note & { readonly command: string; readonly subject: string },
): Promise<void> {
  const { table, clock = systemClock, random = systemRandomBytes } = deps;
  const at = clock.now();
  const { by, reason, command, subject } = operation;
  const row: OperationRow = {
    ...operationKey(at, mintToken(random)),
    schema: SCHEMA,
    at,
    by,
    command,
    subject,
    reason,
    expiresAt: expiresAt(at, OPERATION_RETENTION_DAYS),
  };
  await table.write({ Put: { Item: { ...row } } });
}

/**
 * Says on an event's outbox row that it is about to be sent once more to one of its consumers: the audit knows by that how
 * long it may be on its way.
 *
 * @returns the row; `undefined` when there is none (any more)
 */
export async function markResent(deps: OperationDeps, eventId: string): Promise<Item | undefined> {
  const { table, clock = systemClock } = deps;
  try {
    return await table.write({
      Update: {
        Key: { ...outboxKeyOf(eventId) },
        UpdateExpression: 'SET resentAt = :now',
        ConditionExpression: 'attribute_exists(PK)',
        ExpressionAttributeValues: { ':now': clock.now() },
      },
    });
  } catch (error) {
    if (isConditionFailed(error)) return undefined;
    throw error;
  }
}

/** Makes a transaction whose first action carries the condition. Returns whether it happened. */
async function happens(deps: OperationDeps, actions: readonly TransactAction[]): Promise<boolean> {
  const { table, clock = systemClock, random = systemRandomBytes } = deps;
  try {
    await transactWithRetry({ table, clock, random }, actions);
    return true;
  } catch (error) {
    if (isTransactionCancelled(error) && error.reasons[0]?.code === 'ConditionalCheckFailed') return false;
    throw error;
  }
}
