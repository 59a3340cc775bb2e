import { isMailroomError } from '../base/errors.ts';
import { isUnreadableId } from '../store/event-id.ts';
import type { InboxRow } from '../store/inbox-row.ts';
import { rejectedKey } from '../store/keys.ts';
import { isLastRefused } from '../store/last-sequence.ts';
import { decisionExpiresAt } from '../store/row-expiry.ts';
import { SCHEMA } from '../store/row-schema.ts';
import type { RowChange, RowCondition } from '../store/row-update.ts';
import type { TransactAction } from '../store/table.ts';
import type { InboxAccess } from './inbox.ts';
import { withoutInboxRow } from './inbox-completion.ts';
import { sameEffects, TOO_OLD } from './inbox-conditions.ts';
import { markUnreadable } from './inbox-history.ts';
import { transactRow } from './inbox-writes.ts';
import { FINAL_REMOVES } from './row-transition.ts';

/** An operator's decision about a message. */
export interface Decided {
  readonly eventId: string;
  readonly by: string;
  readonly reason: string;
}

/** The final status that an operator gives a message. */
export interface FinalDecision extends Decided {
  readonly status: 'PROCESSED' | 'DISCARDED';
  /** A token of the decision: it prevents further writes by a worker that is still running. */
  readonly fence: string;
  /** Identifies what the operator commits with it. Absent: nothing. */
  readonly commitId?: string | undefined;
  /** The event that is sent in place of a DISCARDED one. @default none */
  readonly replacedBy?: string | undefined;
}

/**
 * Any state -> PROCESSED or DISCARDED without running the message, with the REJECTED pointer removed, in one transaction.
 *
 * @param condition - the rows that may be changed: {@link asSeen}, or by force {@link NOT_FINAL}
 * @param options.writes - commit in the same transaction @default none
 * @param options.raise - raises the last sequence of an ordered message in the same transaction @default none
 * @param options.needsRow - a pointer without its row refuses the decision @default false
 * @returns `row-deleted` if such a pointer refused it, `changed` if the row or the last sequence did
 * @throws `TRANSACTION_CANCELLED`, with the reasons of `writes`, if one of them was refused
 */
export async function decideMessage(
  inbox: InboxAccess,
  decision: FinalDecision,
  condition: RowCondition,
  {
    writes = [],
    raise = [],
    needsRow = false,
  }: {
    readonly writes?: readonly TransactAction[];
    readonly raise?: readonly TransactAction[];
    readonly needsRow?: boolean;
  } = {},
): Promise<'done' | 'changed' | 'row-deleted'> {
  const { eventId, status, fence, by, reason, commitId, replacedBy } = decision;
  const now = inbox.clock.now();
  const change: RowChange = {
    set: {
      status,
      schema: SCHEMA,
      fence,
      commitId,
      expiresAt: decisionExpiresAt(now),
      ...(status === 'PROCESSED'
        ? { processedAt: now, resolvedBy: by, resolvedReason: reason }
        : { discardedAt: now, discardedBy: by, discardedReason: reason, replacedBy }),
    },
    computed: { attempts: 'if_not_exists(attempts, :none)' },
    values: { ':none': 0 },
    remove: FINAL_REMOVES,
  };
  const isGone = needsRow && { ConditionExpression: 'attribute_not_exists(PK)' };
  const pointer = { Delete: { Key: { ...rejectedKey(inbox.consumer, eventId) }, ...isGone } };
  const others = [pointer, ...raise, ...writes];
  // Before the decision: a mark without it costs a read, and a decision without its mark would let the message run once it can be read.
  if (isUnreadableId(eventId)) await markUnreadable(inbox, eventId);
  try {
    const { ok } = await transactRow(inbox, eventId, change, condition, others);
    return ok ? 'done' : 'changed';
  } catch (error) {
    if (!isMailroomError(error, 'TRANSACTION_CANCELLED')) throw error;
    if (needsRow && error.reasons[1]?.code === 'ConditionalCheckFailed') return 'row-deleted';
    if (raise.length > 0 && isLastRefused(error, RAISED_AT)) return 'changed';
    throw writes.length === 0 ? error : withoutInboxRow(error, writes.length);
  }
}

/** The index of the last sequence in the transaction, after the row and its pointer. */
const RAISED_AT = 2;

/** Any row that is not final, even if a worker holds it. */
export const NOT_FINAL: RowCondition = {
  condition: 'attribute_not_exists(PK) OR NOT (#status IN (:PROCESSED, :DISCARDED))',
  values: { ':PROCESSED': 'PROCESSED', ':DISCARDED': 'DISCARDED' },
};

/** The row is unchanged since it was read, with its effects: a check covers those that were read. */
export function asSeen(row: InboxRow | undefined): RowCondition {
  if (row === undefined) return { condition: 'attribute_not_exists(PK)', values: {} };
  const { status, fence } = row;
  const effects = sameEffects(row);
  const { leaseUntil } = 'leaseUntil' in row ? row : {};
  return {
    condition: [
      '#status = :seenStatus',
      fence === '' ? 'attribute_not_exists(fence)' : 'fence = :seenFence',
      leaseUntil === undefined ? 'attribute_not_exists(leaseUntil)' : 'leaseUntil = :seenLeaseUntil',
      effects.condition,
    ].join(' AND '),
    values: {
      ':seenStatus': status,
      ...(fence === '' ? {} : { ':seenFence': fence }),
      ...(leaseUntil === undefined ? {} : { ':seenLeaseUntil': leaseUntil }),
      ...effects.values,
    },
  };
}

/**
 * Allows a message to run that was rejected because its event is older than the inbox retention.
 *
 * @returns `false` if it was not rejected for that reason
 */
export async function allowMessage(inbox: InboxAccess, { eventId, by, reason }: Decided): Promise<boolean> {
  const change = {
    set: { runAnyway: true, allowedBy: by, allowedAt: inbox.clock.now(), allowedReason: reason },
  };
  const tooOld = {
    condition: '#status = :REJECTED AND reason = :TOO_OLD',
    values: { ':REJECTED': 'REJECTED', ':TOO_OLD': TOO_OLD },
  };
  const { ok } = await transactRow(inbox, eventId, change, tooOld, []);
  return ok;
}
