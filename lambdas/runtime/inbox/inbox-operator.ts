import { INBOX_RETENTION_MAX_DAYS } from '../base/consumer-config.ts';
import { isMailroomError } from '../base/errors.ts';
import { isUnreadableId } from '../store/event-id.ts';
import { rejectedKey } from '../store/keys.ts';
import { isLastRefused } from '../store/last-sequence.ts';
import { SPARE_DAYS } from '../store/row-expiry.ts';
import type { TransactAction } from '../store/table.ts';
import type { InboxAccess } from './inbox.ts';
import { withoutInboxRow } from './inbox-completion.ts';
import { type asSeen, type NOT_FINAL, REJECTED_AS_TOO_OLD } from './inbox-conditions.ts';
import { markUnreadable } from './inbox-history.ts';
import { writeTransition } from './inbox-writes.ts';
import { FINAL_REMOVES, type RowsBefore, type RowTransition } from './row-transition.ts';

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
 * @param from - the rows that may be changed: {@link asSeen}, or by force {@link NOT_FINAL}
 * @param options.writes - commit in the same transaction @default none
 * @param options.raise - raises the last sequence of an ordered message in the same transaction @default none
 * @param options.needsRow - a pointer without its row refuses the decision @default false
 * @returns `row-deleted` if such a pointer refused it, `changed` if the row or the last sequence did
 * @throws `TRANSACTION_CANCELLED`, with the reasons of `writes`, if one of them was refused
 */
export async function decideMessage(
  inbox: InboxAccess,
  decision: FinalDecision,
  from: RowsBefore,
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
  const { eventId } = decision;
  const isGone = needsRow && { ConditionExpression: 'attribute_not_exists(PK)' };
  const pointer = { Delete: { Key: { ...rejectedKey(inbox.consumer, eventId) }, ...isGone } };
  const others = [pointer, ...raise, ...writes];
  // Before the decision: a mark without it costs a read, and a decision without its mark would let the message run once it can be read.
  if (isUnreadableId(eventId)) await markUnreadable(inbox, eventId);
  try {
    const { ok } = await writeTransition(inbox, eventId, from, decided(inbox, decision), others);
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

/**
 * PROCESSED or DISCARDED, by an operator. Its row outlives every retention, because an operator's command does not know under which one a
 * repeat will be judged: a deployment may just change it.
 */
function decided(
  { clock }: Pick<InboxAccess, 'clock'>,
  { status, fence, by, reason, commitId, replacedBy }: FinalDecision,
): RowTransition {
  const now = clock.now();
  const what =
    status === 'PROCESSED'
      ? { processedAt: now, resolvedBy: by, resolvedReason: reason }
      : { discardedAt: now, discardedBy: by, discardedReason: reason, replacedBy };
  return {
    set: { status, fence, commitId, ...what },
    count: 'kept',
    keepDays: INBOX_RETENTION_MAX_DAYS + SPARE_DAYS,
    clear: FINAL_REMOVES,
  };
}

/**
 * Allows a message to run that was rejected because its event is older than the inbox retention.
 *
 * @returns `false` if it was not rejected for that reason
 */
export async function allowMessage(inbox: InboxAccess, { eventId, by, reason }: Decided): Promise<boolean> {
  const allowed = { runAnyway: true, allowedBy: by, allowedAt: inbox.clock.now(), allowedReason: reason };
  const { ok } = await writeTransition(inbox, eventId, REJECTED_AS_TOO_OLD, { set: allowed, clear: [] }, []);
  return ok;
}
