import { type Clock, systemClock } from './clock.ts';
import { isTransactionCancelled, MailroomError } from './errors.ts';
import {
  eventIdShard,
  eventIdTime,
  mintToken,
  minuteOf,
  outboxKeyOf,
  type RandomBytes,
  systemRandomBytes,
} from './event-id.ts';
import { transactWithRetry } from './retry.ts';
import {
  asRow,
  deadKey,
  expiresAt,
  type InboxRow,
  inboxKey,
  rejectedKey,
  SCHEMA,
  type UnsettledPointer,
  unsettledKey,
} from './rows.ts';
import type { Table, TransactAction } from './table.ts';

/** What an operator's interventions need. */
export interface OperationDeps {
  readonly table: Table;
  /** @default the machine's */
  readonly clock?: Clock | undefined;
  /** @default the machine's */
  readonly random?: RandomBytes | undefined;
}

/**
 * DEAD -> PENDING: the event is published by the next sweep, with its attempts counted from 0. Its DEAD pointer goes
 * and its minute becomes unsettled in the same transaction: the sweep's ages may have passed it long ago.
 *
 * @returns `false` when the event is not DEAD (any more): nothing was changed
 * @throws `BAD_EVENT_ID` when it is no event id
 *
 * @example
 * ```ts
 * await requeueDead({ table }, '01a1fba6-4458-7a41-9c37-3f5d2b8e1103');
 * ```
 */
export async function requeueDead(deps: OperationDeps, eventId: string): Promise<boolean> {
  const { table, clock = systemClock, random = systemRandomBytes } = deps;
  const shard = eventIdShard(eventId);
  const pointer: UnsettledPointer = {
    ...unsettledKey(shard, minuteOf(eventIdTime(eventId))),
    schema: SCHEMA,
    token: mintToken(random),
  };
  const happened = await onCondition({ table, clock, random }, [
    {
      Update: {
        Key: { ...outboxKeyOf(eventId) },
        UpdateExpression: 'SET #status = :PENDING, attempts = :none, leaseUntil = :now REMOVE deadAt',
        ConditionExpression: '#status = :DEAD',
        ExpressionAttributeNames: { '#status': 'status' },
        ExpressionAttributeValues: {
          ':PENDING': 'PENDING',
          ':DEAD': 'DEAD',
          ':none': 0,
          ':now': clock.now(),
        },
      },
    },
    { Delete: { Key: { ...deadKey(shard, eventId) } } },
    { Put: { Item: { ...pointer } } },
  ]);
  if (happened) return true;
  const row = await table.get(outboxKeyOf(eventId), { consistent: true });
  if (row !== undefined) return false;
  throw new MailroomError(
    'NO_SUCH_EVENT',
    `There is no outbox row of event ${eventId}: it was never committed here, or was published and has expired. ` +
      `Check the id and the table (${table.name}).`,
  );
}

/** Says which message is resolved, by whom, and why. */
export interface Resolution {
  readonly consumer: string;
  readonly eventId: string;
  /** Stored on the row. */
  readonly reason: string;
  /** Who decided it; stored on the row. */
  readonly by: string;
  /** How long the row is kept before TTL may delete it: the consumer's `inboxRetentionDays`. */
  readonly inboxRetentionDays: number;
}

/**
 * Sets a message PROCESSED without running its handler: what it should have done was done by hand. The row takes a
 * fence of its own, so that a worker which still runs can write nothing any more, and a REJECTED pointer goes in the
 * same transaction. When the message comes again it is absorbed as a duplicate.
 *
 * @returns what the row says: `resolved`; `processed` when it was so before; `leased` when a worker holds it, until
 * `until` - nothing was changed then
 *
 * @example
 * ```ts
 * await resolveMessage({ table }, { consumer: 'payments', eventId, reason: 'charged by phone', by: 'ada', inboxRetentionDays: 35 });
 * ```
 */
export async function resolveMessage(
  deps: OperationDeps,
  { consumer, eventId, reason, by, inboxRetentionDays }: Resolution,
): Promise<
  { readonly status: 'resolved' | 'processed' } | { readonly status: 'leased'; readonly until: number }
> {
  const { table, clock = systemClock, random = systemRandomBytes } = deps;
  eventIdTime(eventId); // refuses what is none
  const now = clock.now();
  const happened = await onCondition({ table, clock, random }, [
    {
      Update: {
        Key: { ...inboxKey(consumer, eventId) },
        UpdateExpression:
          'SET #status = :PROCESSED, #schema = :schema, fence = :fence, processedAt = :now, expiresAt = :expiresAt, ' +
          'attempts = if_not_exists(attempts, :none), resolvedBy = :by, resolvedReason = :reason ' +
          'REMOVE leaseUntil, endsBy, reason, rejectedAt',
        ConditionExpression:
          'attribute_not_exists(PK) OR #status IN (:FAILED, :REJECTED) OR (#status = :PROCESSING AND leaseUntil < :now)',
        ExpressionAttributeNames: { '#status': 'status', '#schema': 'schema' },
        ExpressionAttributeValues: {
          ':PROCESSED': 'PROCESSED',
          ':FAILED': 'FAILED',
          ':REJECTED': 'REJECTED',
          ':PROCESSING': 'PROCESSING',
          ':schema': SCHEMA,
          ':fence': mintToken(random),
          ':now': now,
          ':expiresAt': expiresAt(now, inboxRetentionDays),
          ':none': 0,
          ':by': by,
          ':reason': reason,
        },
      },
    },
    { Delete: { Key: { ...rejectedKey(consumer, eventId) } } },
  ]);
  if (happened) return { status: 'resolved' };
  const item = await table.get(inboxKey(consumer, eventId), { consistent: true });
  const row = item === undefined ? undefined : asRow<InboxRow>(item);
  return row?.status === 'PROCESSING'
    ? { status: 'leased', until: row.leaseUntil ?? now }
    : { status: 'processed' };
}

/** Makes a transaction whose first action carries the condition. Returns whether it happened. */
async function onCondition(
  deps: { readonly table: Table; readonly clock: Clock; readonly random: RandomBytes },
  actions: readonly TransactAction[],
): Promise<boolean> {
  try {
    await transactWithRetry(deps, actions);
    return true;
  } catch (error) {
    if (isTransactionCancelled(error) && error.reasons[0]?.code === 'ConditionalCheckFailed') return false;
    throw error;
  }
}
