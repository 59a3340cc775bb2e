import { systemClock } from '../clock.ts';
import { TOO_OLD } from '../consume/inbox-conditions.ts';
import { MailroomError } from '../errors.ts';
import { eventIdTime, mintToken, systemRandomBytes } from '../event-id.ts';
import { asRow, expiresAt, type InboxRow, inboxKey, rejectedKey, SCHEMA } from '../rows.ts';
import { happens, type Note, type OperationDeps } from './operations.ts';

/** Says which message is meant, who decided about it, and why. */
export interface MessageNote extends Note {
  readonly consumer: string;
  readonly eventId: string;
}

/** Says which message is resolved or discarded, by whom, and why. */
export interface Resolution extends MessageNote {
  /** How long the row is kept before TTL may delete it: the consumer's `inboxRetentionDays`. */
  readonly inboxRetentionDays: number;
  /**
   * Takes the message from a worker that still holds it: nothing that this worker writes from then on is accepted. What
   * it does outside DynamoDB cannot be taken back. @default false
   */
  readonly force?: boolean | undefined;
}

/** What a message is after an operator's decision; `leased`: a worker holds it until `until`, and nothing was changed. */
export type Decision =
  | { readonly status: 'resolved' | 'processed' | 'discarded' }
  | { readonly status: 'leased'; readonly until: number };

/** Nobody has it, or its worker's lease has passed. */
const FREE =
  'attribute_not_exists(PK) OR #status IN (:FAILED, :REJECTED) OR (#status = :PROCESSING AND leaseUntil < :now)';

/** The same, or somebody has it. */
const NOT_FINAL = 'attribute_not_exists(PK) OR #status IN (:FAILED, :REJECTED, :PROCESSING)';

/**
 * Sets a message PROCESSED without running its handler: what it should have done was done by hand. The row takes a
 * fence of its own, so that a worker which still runs can write nothing any more, and a REJECTED pointer goes in the
 * same transaction. When the message comes again it is absorbed as a duplicate.
 *
 * @returns what the row says: `resolved`; `processed` or `discarded` when it was so before; `leased` when a worker holds
 * it, until `until` - nothing was changed then
 * @throws `BAD_EVENT_ID` when it is neither an event id nor `unreadable-<SQS message id>`
 *
 * @example
 * ```ts
 * await resolveMessage({ table }, { consumer: 'payments', eventId, reason: 'charged by phone', by: 'ada', inboxRetentionDays: 35 });
 * ```
 */
export async function resolveMessage(deps: OperationDeps, resolution: Resolution): Promise<Decision> {
  if (!resolution.eventId.startsWith('unreadable-')) eventIdTime(resolution.eventId); // refuses what is none
  const happened = await end(deps, resolution, {
    status: 'PROCESSED',
    set: 'processedAt = :now, resolvedBy = :by, resolvedReason = :reason',
  });
  return happened ? { status: 'resolved' } : standing(deps, resolution);
}

/**
 * Gives a message up for good: DISCARDED, so that it is never run, whenever it comes again. The row takes a fence of its
 * own, and a REJECTED pointer goes in the same transaction. Refused when it is processed, or a worker holds it.
 *
 * @param discard.eventId - the event's id, or `unreadable-<SQS message id>` for a message without one
 * @returns what the row says: `discarded` now or before, `processed`, or `leased` until `until`
 */
export async function discardMessage(
  deps: OperationDeps,
  discard: Omit<Resolution, 'force'>,
): Promise<Decision> {
  const happened = await end(deps, discard, {
    status: 'DISCARDED',
    set: 'discardedAt = :now, discardedBy = :by, discardedReason = :reason',
  });
  return happened ? { status: 'discarded' } : standing(deps, discard);
}

/** Sets a final status, with a fence of its own. @returns whether it happened */
async function end(
  deps: OperationDeps,
  { consumer, eventId, by, reason, inboxRetentionDays, force = false }: Resolution,
  final: { readonly status: 'PROCESSED' | 'DISCARDED'; readonly set: string },
): Promise<boolean> {
  const { clock = systemClock, random = systemRandomBytes } = deps;
  const now = clock.now();
  return happens(deps, [
    {
      Update: {
        Key: { ...inboxKey(consumer, eventId) },
        UpdateExpression:
          `SET #status = :final, #schema = :schema, fence = :fence, expiresAt = :expiresAt, ${final.set}, ` +
          'attempts = if_not_exists(attempts, :none) REMOVE leaseUntil, endsBy, retryAt, reason, rejectedAt',
        ConditionExpression: force ? NOT_FINAL : FREE,
        ExpressionAttributeNames: { '#status': 'status', '#schema': 'schema' },
        ExpressionAttributeValues: {
          ':final': final.status,
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
}

/** What the row of a message says that could not be ended. */
async function standing(deps: OperationDeps, { consumer, eventId }: Resolution): Promise<Decision> {
  const { clock = systemClock } = deps;
  const item = await deps.table.get(inboxKey(consumer, eventId), { consistent: true });
  const row = item === undefined ? undefined : asRow<InboxRow>(item);
  if (row?.status === 'DISCARDED') return { status: 'discarded' };
  if (row?.status === 'PROCESSED') return { status: 'processed' };
  // Held; or let go since, and free by now.
  return { status: 'leased', until: row?.leaseUntil ?? clock.now() };
}

/**
 * Lets a message run that was rejected because its event is older than the inbox retention: its row may have expired, so
 * only somebody who knows that it was not processed can say so. It runs when it is redriven.
 *
 * @throws `NOT_TOO_OLD` when it was not rejected for that: nothing was changed
 */
export async function allowTooOld(deps: OperationDeps, note: MessageNote): Promise<void> {
  const { clock = systemClock } = deps;
  const { consumer, eventId, by, reason } = note;
  const key = inboxKey(consumer, eventId);
  const happened = await happens(deps, [
    {
      Update: {
        Key: { ...key },
        UpdateExpression: 'SET runAnyway = :true, allowedBy = :by, allowedAt = :now, allowedReason = :reason',
        ConditionExpression: '#status = :REJECTED AND #reason = :TOO_OLD',
        ExpressionAttributeNames: { '#status': 'status', '#reason': 'reason' },
        ExpressionAttributeValues: {
          ':true': true,
          ':REJECTED': 'REJECTED',
          ':TOO_OLD': TOO_OLD,
          ':by': by,
          ':now': clock.now(),
          ':reason': reason,
        },
      },
    },
  ]);
  if (happened) return;
  const item = await deps.table.get(key, { consistent: true });
  const row = item === undefined ? undefined : asRow<InboxRow>(item);
  const found =
    row === undefined ? 'has no row' : `is ${[row.status, row.reason].filter(Boolean).join(', ')}`;
  throw new MailroomError(
    'NOT_TOO_OLD',
    `The message ${eventId} of ${consumer} ${found}; only one that is REJECTED as ${TOO_OLD} needs to be allowed. ` +
      'Any other can be redriven as it is.',
  );
}
