import type { Claim, InboxContext, Message } from './inbox.ts';
import { forgottenBecause } from './inbox-history.ts';
import type { RowCondition } from './row-update.ts';
import type { InboxRow } from './rows.ts';
import type { Item, Key, TransactAction } from './table.ts';

/**
 * From this many claims in a row that ended without a result, a message runs alone: a claim that ends so may have been killed
 * by a neighbour in its batch, or robbed of its time. Only one that ran alone counts as an attempt: see ADR 19.
 */
export const ALONE_FROM = 2;

/** Why a message that is older than the inbox retention, and has no row, is rejected. */
export const TOO_OLD = 'EVENT_TOO_OLD';

/** Its worker's lease has passed, or there is none. */
const LEASE_PASSED = '#status = :held AND NOT leaseUntil >= :now';

/** The message was not rejected under the SQS message id that it came with: another id is a redrive. */
const NOT_REJECTED = 'NOT contains(rejectedIds, :messageId)';

/**
 * The claim's condition, clause by clause: nobody has it (unless it is too old to know), or it failed and need not run
 * alone; and it was not rejected under this very SQS message id.
 */
export function claimable(inbox: InboxContext, message: Message, alone: boolean): RowCondition {
  // AND binds more tightly than OR. In parentheses of its own it would be refused where it stands alone: `((…))`.
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

/** A row whose worker's lease has passed, in this very state. One without a lease is free at once. */
export function abandoned({ clock }: InboxContext, message: Message, row: InboxRow): RowCondition {
  return {
    condition: `${LEASE_PASSED} AND ${fencedBy(row)} AND ${NOT_REJECTED}`,
    values: {
      ':held': 'PROCESSING',
      ':now': clock.now(),
      ':messageId': message.messageId,
      ...fenceOf(row),
    },
  };
}

/** Whatever nobody holds: for a rejection that needs no claim. */
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

/** A REJECTED row that a redrive may open again: this very state, under another message id. */
export function readmissible(message: Message, row: InboxRow): RowCondition {
  return {
    condition: `#status = :REJECTED AND ${fencedBy(row)} AND ${NOT_REJECTED}`,
    values: { ':REJECTED': 'REJECTED', ':messageId': message.messageId, ...fenceOf(row) },
  };
}

/** The condition of every transition under a claim: it is still ours. */
export function mine(claim: Claim): RowCondition {
  return {
    condition: '#status = :heldStatus AND fence = :heldFence',
    values: { ':heldStatus': 'PROCESSING', ':heldFence': claim.fence },
  };
}

/** The condition that a message is still ours, for a transaction that must not happen otherwise. */
export function heldBy(claim: Claim, key: Key): TransactAction {
  const { condition, values } = mine(claim);
  return {
    ConditionCheck: {
      Key: { ...key },
      ConditionExpression: condition,
      ExpressionAttributeNames: { '#status': 'status' },
      ExpressionAttributeValues: values,
    },
  };
}

/** A message without a row may be claimed, unless its row may have expired. */
function unknown(inbox: InboxContext, message: Message): string[] {
  return forgottenBecause(inbox, message.eventId) === undefined ? ['attribute_not_exists(PK)'] : [];
}

/** The row is in the very state in which it was read: a fence is new with each claim. A strange row may have none. */
function fencedBy({ fence }: InboxRow): string {
  return fence === undefined ? 'attribute_not_exists(fence)' : 'fence = :heldFence';
}

function fenceOf({ fence }: InboxRow): Item {
  return fence === undefined ? {} : { ':heldFence': fence };
}
