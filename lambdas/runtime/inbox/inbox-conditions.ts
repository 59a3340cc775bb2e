import type { MailroomErrorCode } from '../base/error-codes.ts';
import type { InboxRow, ProcessingRow, RejectedRow } from '../store/inbox-row.ts';
import type { Claim, InboxRules, Message } from './inbox.ts';
import { mayHaveRunBecause } from './inbox-history.ts';
import type { RowsBefore } from './row-transition.ts';

/**
 * After this many consecutive claims that ended without a result, a message runs alone: another message in its batch may have
 * killed such a claim or used up its time. Only a claim that ran alone counts as an attempt: see ADR 19.
 */
export const ALONE_FROM = 2;

/** The reason for rejecting a message that is older than the inbox retention and has no row. */
export const TOO_OLD = 'EVENT_TOO_OLD' satisfies MailroomErrorCode;

/** The reason of a message that its consumer discarded because it had waited for longer than its handler takes. */
export const STALE = 'STALE';

/** Every transition under a claim: this worker still holds the message. */
export function ours({ fence }: Claim): RowsBefore {
  return { status: ['PROCESSING'], fence };
}

/**
 * A claim: the message has no row (unless its row may have expired), or it failed and need not run alone; and it was not rejected
 * under this message id.
 */
export function claimable(inbox: InboxRules, message: Message, alone: boolean): RowsBefore {
  return {
    absent: mayBeAbsent(inbox, message),
    status: ['FAILED'],
    unfinishedBelow: alone ? undefined : ALONE_FROM,
    notRejectedAs: message.messageId,
  };
}

/** A takeover: the lease has passed, and the row is exactly in the state that was read. A row without a lease is free immediately. */
export function abandoned({ messageId }: Message, { fence, effects }: ProcessingRow): RowsBefore {
  const asRead = { fence, effects };
  return { status: ['PROCESSING'], leasePassed: true, asRead, notRejectedAs: messageId };
}

/**
 * A rejection that needs no claim: no worker holds the message. Only the reason `EVENT_TOO_OLD` creates a row where one may have expired: any
 * other problem could be fixed, which would let the message run again.
 */
export function rejectable(inbox: InboxRules, message: Message, reason: string): RowsBefore {
  return {
    absent: reason === TOO_OLD || mayBeAbsent(inbox, message),
    status: ['FAILED', 'PROCESSING'],
    leasePassed: true,
    notRejectedAs: message.messageId,
  };
}

/** A redrive that reopens a REJECTED row: in exactly this state, under another message id. */
export function readmissible({ messageId }: Message, { fence }: RejectedRow): RowsBefore {
  return { status: ['REJECTED'], asRead: { fence }, notRejectedAs: messageId };
}

/** A commit without a claim: the message has no row. */
export const NO_ROW: RowsBefore = { absent: true };

/** An operator's decision by force: any row that is not final, even if a worker holds it. */
export const NOT_FINAL: RowsBefore = { absent: true, notStatus: ['PROCESSED', 'DISCARDED'] };

/** An operator's decision: the row is unchanged since it was read, with its effects, because a check covers those that were read. */
export function asSeen(row: InboxRow | undefined): RowsBefore {
  if (row === undefined) return NO_ROW;
  const { status, fence, effects } = row;
  const { leaseUntil } = 'leaseUntil' in row ? row : {};
  return { status: [status], asRead: { fence: fence === '' ? undefined : fence, leaseUntil, effects } };
}

/** An operator's repair of a REJECTED row that is not listed: no claim and no rejection has changed it since it was read. */
export function asRejected({ fence, reason }: RejectedRow): RowsBefore {
  return { status: ['REJECTED'], asRead: { fence: fence === '' ? undefined : fence, reason } };
}

/** An operator's permission to run: it was rejected because its event is older than the inbox retention. */
export const REJECTED_AS_TOO_OLD: RowsBefore = { status: ['REJECTED'], asRead: { reason: TOO_OLD } };

/** A message without a row may be claimed, unless its row may have expired. */
function mayBeAbsent(inbox: InboxRules, message: Message): boolean {
  return mayHaveRunBecause(inbox, message) === undefined;
}
