import { systemClock } from '../clock.ts';
import { MailroomError } from '../errors.ts';
import { eventIdTime, mintToken, systemRandomBytes } from '../store/event-id.ts';
import { TOO_OLD } from '../store/inbox-conditions.ts';
import { inboxState } from '../store/inbox-state.ts';
import type { Note, OperationDeps } from '../store/operation-record.ts';
import { happens } from '../store/retry.ts';
import { expiresAt, type InboxRow, inboxKey, rejectedKey, SCHEMA } from '../store/rows.ts';
import { isUnreadable, readable, readInboxRow } from '../store/stored-rows.ts';
import type { Item, TransactAction } from '../store/table.ts';

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

/**
 * What a message is after an operator's decision. `leased`: a worker may hold it until `until`; `unreadable`: nobody can say
 * whether one does. In both cases nothing was changed.
 */
export type Decision =
  | { readonly status: 'resolved' | 'processed' | 'discarded' }
  | { readonly status: 'leased'; readonly until: number }
  | { readonly status: 'unreadable'; readonly problem: string };

/**
 * Sets a message PROCESSED without running its handler: what it should have done was done by hand. The row takes a
 * fence of its own, so that a worker which still runs can write nothing any more, and a REJECTED pointer goes in the
 * same transaction. When the message comes again it is absorbed as a duplicate.
 *
 * @returns what the row says: `resolved`; `processed` or `discarded` when it was so before; `leased` or `unreadable` when
 * nothing was changed
 * @throws `BAD_EVENT_ID` when it is neither an event id nor `unreadable-<SQS message id>`
 *
 * @example
 * ```ts
 * await resolveMessage({ table }, { consumer: 'payments', eventId, reason: 'charged by phone', by: 'ada', inboxRetentionDays: 35 });
 * ```
 */
export async function resolveMessage(deps: OperationDeps, resolution: Resolution): Promise<Decision> {
  if (!resolution.eventId.startsWith('unreadable-')) eventIdTime(resolution.eventId); // refuses what is none
  return decide(deps, resolution, {
    status: 'PROCESSED',
    set: 'processedAt = :now, resolvedBy = :by, resolvedReason = :reason',
    decided: { status: 'resolved' },
  });
}

/**
 * Gives a message up for good: DISCARDED, so that it is never run, whenever it comes again. The row takes a fence of its
 * own, and a REJECTED pointer goes in the same transaction. Refused when it is processed, or a worker holds it.
 *
 * @param discard.eventId - the event's id, or `unreadable-<SQS message id>` for a message without one
 * @returns what the row says: `discarded` now or before, `processed`; `leased` or `unreadable` when nothing was changed
 */
export async function discardMessage(
  deps: OperationDeps,
  discard: Omit<Resolution, 'force'>,
): Promise<Decision> {
  return decide(deps, discard, {
    status: 'DISCARDED',
    set: 'discardedAt = :now, discardedBy = :by, discardedReason = :reason',
    decided: { status: 'discarded' },
  });
}

/** A final status, what is stored with it, and the decision that it stands for. */
interface FinalStatus {
  readonly status: 'PROCESSED' | 'DISCARDED';
  readonly set: string;
  readonly decided: Decision;
}

/** A condition on the inbox row, and the values in it. */
interface Condition {
  readonly condition: string;
  readonly values: Item;
}

/** How often a message is looked at whose row changes between the look and the write. */
const LOOKS = 3;

/** The longest that a worker can hold a message: Lambda's longest timeout. */
const LEASE_MAX_MS = 15 * 60_000;

/**
 * Takes a message for the operator. The invariant, without `force`:
 *
 *     claim          look           write
 *     |--- lease ----|--- margin ---|
 *                leaseUntil     now, by a clock that is not ahead of AWS's
 *
 * 1. At the look the message is in no worker's hands: it has no row, is FAILED or REJECTED, or is PROCESSING under a lease that
 *    has been over for the margin by which clocks may differ. An operator's own clock says nothing about that: a laptop that
 *    is half a minute ahead would see every lease as passed.
 * 2. At the write the row is the one that was seen: its status, its fence and its lease. A claim, a takeover or a renewal in
 *    between wins, and the message is looked at again. A lease that was over at the look is over at the write.
 */
async function decide(deps: OperationDeps, resolution: Resolution, final: FinalStatus): Promise<Decision> {
  const { table, clock = systemClock, random = systemRandomBytes } = deps;
  const fence = mintToken(random);
  const end = (condition: Condition) =>
    happens(deps, ending(resolution, final, fence, condition, clock.now()));
  if (resolution.force === true && (await end(NOT_FINAL))) return final.decided;
  for (let looks = 0; looks < LOOKS; looks += 1) {
    const key = inboxKey(resolution.consumer, resolution.eventId);
    const row = readInboxRow(await table.get(key, { consistent: true }));
    const state = inboxState(row, await judgedAt(deps, readable(row)));
    if (state.is === 'unreadable') return { status: 'unreadable', problem: state.problem };
    if (state.is === 'leased') return { status: 'leased', until: state.until };
    if (state.is === 'processed' || state.is === 'discarded') return { status: state.is };
    if (await end(asSeen(readable(row)))) return final.decided;
  }
  return { status: 'leased', until: clock.now() }; // it changes hands all the time
}

/**
 * The time by which the lease of a row is judged. Without a clock that can be trusted the lease is waited out: it was granted
 * after `claimedAt` by the worker's own clock, so as much time as lies between the two has passed by then. A row that is still
 * as it was seen has a lease that is over, and only such a row is written.
 */
async function judgedAt(deps: OperationDeps, row: InboxRow | undefined): Promise<number> {
  const { clock = systemClock, clockIsTrusted = true } = deps;
  if (clockIsTrusted || row?.status !== 'PROCESSING' || row.leaseUntil === undefined) return clock.now();
  const lastsMs = row.leaseUntil - (row.claimedAt ?? 0);
  await clock.sleep(lastsMs > 0 ? Math.min(lastsMs, LEASE_MAX_MS) : LEASE_MAX_MS);
  return Number.POSITIVE_INFINITY;
}

/** Whoever holds it, unless it is final, or a newer version wrote it. */
const NOT_FINAL: Condition = {
  condition:
    'attribute_not_exists(PK) OR ' +
    '((attribute_not_exists(#schema) OR #schema <= :schema) AND NOT (#status IN (:PROCESSED, :DISCARDED)))',
  values: { ':PROCESSED': 'PROCESSED', ':DISCARDED': 'DISCARDED' },
};

/** The row is still the one that was seen. */
function asSeen(row: InboxRow | undefined): Condition {
  if (row === undefined) return { condition: 'attribute_not_exists(PK)', values: {} };
  const { status, fence, leaseUntil } = row;
  return {
    condition: [
      '#status = :seenStatus',
      fence === '' ? 'attribute_not_exists(fence)' : 'fence = :seenFence',
      leaseUntil === undefined ? 'attribute_not_exists(leaseUntil)' : 'leaseUntil = :seenLeaseUntil',
    ].join(' AND '),
    values: {
      ':seenStatus': status,
      ...(fence === '' ? {} : { ':seenFence': fence }),
      ...(leaseUntil === undefined ? {} : { ':seenLeaseUntil': leaseUntil }),
    },
  };
}

/** The transaction that sets a final status, with a fence of its own, and takes the REJECTED pointer out. */
function ending(
  { consumer, eventId, by, reason, inboxRetentionDays }: Resolution,
  final: FinalStatus,
  fence: string,
  { condition, values }: Condition,
  now: number,
): TransactAction[] {
  return [
    {
      Update: {
        Key: { ...inboxKey(consumer, eventId) },
        UpdateExpression:
          `SET #status = :final, #schema = :schema, fence = :fence, expiresAt = :expiresAt, ${final.set}, ` +
          'attempts = if_not_exists(attempts, :none) ' +
          'REMOVE leaseUntil, endsBy, retryAt, reason, rejectedAt, unfinished, outOfTime',
        ConditionExpression: condition,
        ExpressionAttributeNames: { '#status': 'status', '#schema': 'schema' },
        ExpressionAttributeValues: {
          ...values,
          ':final': final.status,
          ':schema': SCHEMA,
          ':fence': fence,
          ':now': now,
          ':expiresAt': expiresAt(now, inboxRetentionDays),
          ':none': 0,
          ':by': by,
          ':reason': reason,
        },
      },
    },
    { Delete: { Key: { ...rejectedKey(consumer, eventId) } } },
  ];
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
  const row = readInboxRow(await deps.table.get(key, { consistent: true }));
  const found =
    row === undefined
      ? 'has no row'
      : isUnreadable(row)
        ? `has a row that cannot be read (${row.unreadable})`
        : `is ${[row.status, row.reason].filter(Boolean).join(', ')}`;
  throw new MailroomError(
    'NOT_TOO_OLD',
    `The message ${eventId} of ${consumer} ${found}; only one that is REJECTED as ${TOO_OLD} needs to be allowed. ` +
      'Any other can be redriven as it is.',
  );
}
