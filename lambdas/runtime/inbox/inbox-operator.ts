import { systemClock } from '../base/clock.ts';
import { INBOX_RETENTION_MAX_DAYS } from '../base/consumer-config.ts';
import { isMailroomError } from '../base/errors.ts';
import { isUnreadableId, systemRandomBytes } from '../store/event-id.ts';
import type { InboxRow, PlaceInOrder } from '../store/inbox-row.ts';
import { inboxKey, rejectedKey } from '../store/keys.ts';
import { isLastRefused } from '../store/last-sequence.ts';
import type { TransactDeps } from '../store/retry.ts';
import { SPARE_DAYS } from '../store/row-expiry.ts';
import { readInboxRow, type UnreadableRow } from '../store/stored-rows.ts';
import type { Item, TransactAction } from '../store/table.ts';
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

/** Writes that commit together with a decision. */
interface DecidedTogether {
  /** @default none */
  readonly writes?: readonly TransactAction[];
  /** Raises the last sequence of an ordered message. @default none */
  readonly raise?: readonly TransactAction[];
  /** A pointer of a rejected message without its row refuses the decision. @default false */
  readonly needsRow?: boolean;
}

/** The end of the write of a decision. `row-deleted`: such a pointer refused it; `changed`: the row or the last sequence has changed. */
type DecidedEnd = 'done' | 'changed' | 'row-deleted';

/** A message as it was read for a decision, in the store that has it. */
export interface MessageToDecide {
  readonly row: InboxRow | UnreadableRow | undefined;
  /** The place of its row in an order. */
  readonly order?: PlaceInOrder | undefined;
  /** The time of the read by the clock that wrote the lease, epoch milliseconds. Absent: only the clocks of the workers have. */
  readonly now?: number | undefined;
  /**
   * Ends the message.
   *
   * @param from - the rows that may be changed: {@link asSeen}, or by force {@link NOT_FINAL}
   * @throws `TRANSACTION_CANCELLED`, with the reasons of `writes`, if one of them was refused
   */
  decide(decision: FinalDecision, from: RowsBefore, together?: DecidedTogether): Promise<DecidedEnd>;
}

/** An operator's changes of the inboxes, in one of the stores. */
export interface InboxChanges {
  /** Reads a message. The read sees every earlier write. */
  read(consumer: string, eventId: string): Promise<MessageToDecide>;
  /** Allows a message to run that was rejected as too old. @returns `false` if it was not rejected for that reason */
  allow(consumer: string, allowed: Decided): Promise<boolean>;
}

/** The changes of the inboxes in a table. */
export function dynamoInboxChanges({
  table,
  clock = systemClock,
  random = systemRandomBytes,
}: TransactDeps): InboxChanges {
  const inboxOf = (consumer: string): InboxAccess => ({ table, clock, random, consumer });
  return {
    read: async (consumer, eventId) => {
      const item = await table.get(inboxKey(consumer, eventId), { consistent: true });
      return {
        row: readInboxRow(item),
        order: placeIn(item),
        decide: (...wanted) => decideMessage(inboxOf(consumer), ...wanted),
      };
    },
    allow: (consumer, allowed) => allowMessage(inboxOf(consumer), allowed),
  };
}

/** The place that a row has. One that was changed by hand may have anything. */
function placeIn(item: Item | undefined): PlaceInOrder | undefined {
  const order = item?.order as Partial<PlaceInOrder> | undefined;
  const isPlace = typeof order?.key === 'string' && Number.isSafeInteger(order.sequence);
  return isPlace ? (order as PlaceInOrder) : undefined;
}

/**
 * Any state -> PROCESSED or DISCARDED without running the message, with the REJECTED pointer removed, in one transaction.
 *
 * @param from - the rows that may be changed: {@link asSeen}, or by force {@link NOT_FINAL}
 * @throws `TRANSACTION_CANCELLED`, with the reasons of `writes`, if one of them was refused
 */
async function decideMessage(
  inbox: InboxAccess,
  decision: FinalDecision,
  from: RowsBefore,
  { writes = [], raise = [], needsRow = false }: DecidedTogether = {},
): Promise<DecidedEnd> {
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
export function decided(
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
async function allowMessage(inbox: InboxAccess, given: Decided): Promise<boolean> {
  const { ok } = await writeTransition(
    inbox,
    given.eventId,
    REJECTED_AS_TOO_OLD,
    allowedToRun(inbox, given),
    [],
  );
  return ok;
}

/** REJECTED as too old -> REJECTED, but its redrive runs it. */
export function allowedToRun({ clock }: Pick<InboxAccess, 'clock'>, { by, reason }: Decided): RowTransition {
  return {
    set: { runAnyway: true, allowedBy: by, allowedAt: clock.now(), allowedReason: reason },
    clear: [],
  };
}
