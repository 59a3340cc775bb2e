import type { MailroomErrorCode } from '../base/error-codes.ts';
import type { InboxRow, ProcessingRow, RejectedRow } from '../store/inbox-row.ts';
import type { RowCondition } from '../store/row-update.ts';
import type { Item } from '../store/table.ts';
import type { Claim, InboxContext, Message } from './inbox.ts';
import { mayHaveRunBecause } from './inbox-history.ts';

/**
 * After this many consecutive claims that ended without a result, a message runs alone: another message in its batch may have
 * killed such a claim or used up its time. Only a claim that ran alone counts as an attempt: see ADR 19.
 */
export const ALONE_FROM = 2;

/** The reason for rejecting a message that is older than the inbox retention and has no row. */
export const TOO_OLD = 'EVENT_TOO_OLD' satisfies MailroomErrorCode;

/** The lease has passed or is missing. */
const LEASE_PASSED = '#status = :held AND NOT leaseUntil >= :now';

/** The message was not rejected under its current SQS message id: a different id means a redrive. */
const NOT_REJECTED = 'NOT contains(rejectedIds, :messageId)';

/**
 * The claim's condition, clause by clause: the message has no row (unless its row may have expired), or it failed and need not
 * run alone; and it was not rejected under this SQS message id.
 */
export function claimable(inbox: InboxContext, message: Message, alone: boolean): RowCondition {
  // AND binds more tightly than OR. Its own parentheses would be refused if it is the only clause: `((…))`.
  const failed = alone ? '#status = :FAILED' : '#status = :FAILED AND NOT unfinished >= :aloneFrom';
  return {
    condition: `(${[...unknown(inbox, message), failed].join(' OR ')}) AND ${NOT_REJECTED}`,
    values: {
      ':FAILED': 'FAILED',
      ':messageId': message.messageId,
      ...(alone ? {} : { ':aloneFrom': ALONE_FROM }),
    },
  };
}

/** A row whose lease has passed, in exactly the state that was read. A row without a lease is free immediately. */
export function abandoned({ clock }: InboxContext, message: Message, row: ProcessingRow): RowCondition {
  const effects = sameEffects(row);
  return {
    condition: `${LEASE_PASSED} AND ${fencedBy(row)} AND ${effects.condition} AND ${NOT_REJECTED}`,
    values: {
      ...effects.values,
      ':held': 'PROCESSING',
      ':now': clock.now(),
      ':messageId': message.messageId,
      ...fenceOf(row),
    },
  };
}

/** Any row that is not held, for a rejection that needs no claim. */
export function rejectable(inbox: InboxContext, message: Message): RowCondition {
  return {
    condition: `(${[...unknown(inbox, message), '#status = :FAILED', `(${LEASE_PASSED})`].join(' OR ')}) AND ${NOT_REJECTED}`,
    values: {
      ':FAILED': 'FAILED',
      ':held': 'PROCESSING',
      ':now': inbox.clock.now(),
      ':messageId': message.messageId,
    },
  };
}

/** A REJECTED row that a redrive may reopen: in exactly this state, under another message id. */
export function readmissible(message: Message, row: RejectedRow): RowCondition {
  return {
    condition: `#status = :REJECTED AND ${fencedBy(row)} AND ${NOT_REJECTED}`,
    values: { ':REJECTED': 'REJECTED', ':messageId': message.messageId, ...fenceOf(row) },
  };
}

/** The condition of every transition under a claim: this worker still holds the message. */
export function mine(claim: Claim): RowCondition {
  return {
    condition: '#status = :heldStatus AND fence = :heldFence',
    values: { ':heldStatus': 'PROCESSING', ':heldFence': claim.fence },
  };
}

/** A message without a row may be claimed, unless its row may have expired. */
function unknown(inbox: InboxContext, message: Message): string[] {
  return mayHaveRunBecause(inbox, message) === undefined ? ['attribute_not_exists(PK)'] : [];
}

/** No effect was started or finished since the row was read: a worker may do that after its lease, until another one takes over. */
export function sameEffects({ effects }: Pick<InboxRow, 'effects'>): RowCondition {
  return effects === undefined
    ? { condition: 'attribute_not_exists(effects)', values: {} }
    : { condition: 'effects = :seenEffects', values: { ':seenEffects': effects } };
}

/** The row is exactly in the state that was read: each claim has a new fence. A row in an unexpected form may have none. */
function fencedBy({ fence }: InboxRow): string {
  return fence === undefined ? 'attribute_not_exists(fence)' : 'fence = :heldFence';
}

function fenceOf({ fence }: InboxRow): Item {
  return fence === undefined ? {} : { ':heldFence': fence };
}
