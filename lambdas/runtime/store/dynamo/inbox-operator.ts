import { systemClock } from '../../base/clock.ts';
import { isMailroomError } from '../../base/errors.ts';
import { asRejected, REJECTED_AS_TOO_OLD } from '../../inbox/inbox-conditions.ts';
import {
  allowedToRun,
  type Decided,
  type DecidedEnd,
  type DecidedTogether,
  decided,
  type FinalDecision,
  type InboxChanges,
  listedAgain,
} from '../../inbox/inbox-operator.ts';
import type { RowsBefore } from '../../inbox/row-transition.ts';
import { isUnreadableId, systemRandomBytes } from '../event-id.ts';
import type { PlaceInOrder, RejectedRow } from '../inbox-row.ts';
import { inboxKey, rejectedKey } from '../keys.ts';
import { type TransactDeps, transactWithRetry } from '../retry.ts';
import { readInboxRow } from '../stored-rows.ts';
import type { Item } from '../table.ts';
import { withoutInboxRow } from './inbox-completion.ts';
import type { InboxAccess } from './inbox-context.ts';
import { markUnreadable } from './inbox-history.ts';
import { rejectedPointer } from './inbox-rejection.ts';
import { changeBy, conditionOf, transactRow, writeTransition } from './inbox-writes.ts';
import { isLastRefused, raiseLast, raising, readLastSequence } from './last-sequence.ts';
import { checkTransaction } from './transaction-checks.ts';

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
    lastSequence: (key) => readLastSequence({ table }, key),
    raise: async (raise) => {
      try {
        await transactWithRetry({ table, clock, random }, [raiseLast(clock, raise)]);
        return true;
      } catch (error) {
        if (isLastRefused(error, 0)) return false;
        throw error;
      }
    },
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
  { writes = [], raise, needsRow = false }: DecidedTogether = {},
): Promise<DecidedEnd> {
  const { eventId } = decision;
  const isGone = needsRow && { ConditionExpression: 'attribute_not_exists(PK)' };
  const pointer = { Delete: { Key: { ...rejectedKey(inbox.consumer, eventId) }, ...isGone } };
  const raised = raising(inbox.clock, raise);
  if (writes.length > 0) checkTransaction(writes, { ...inbox, ownActions: OWN_ACTIONS + raised.length });
  const others = [pointer, ...raised, ...writes];
  // Before the decision: a mark without it costs a read, and a decision without its mark would let the message run once it can be read.
  if (isUnreadableId(eventId)) await markUnreadable(inbox, eventId);
  try {
    const { ok } = await writeTransition(inbox, eventId, from, decided(inbox, decision), others);
    return ok ? 'done' : 'changed';
  } catch (error) {
    if (!isMailroomError(error, 'TRANSACTION_CANCELLED')) throw error;
    if (needsRow && error.reasons[1]?.code === 'ConditionalCheckFailed') return 'row-deleted';
    if (raise !== undefined && isLastRefused(error, RAISED_AT)) return 'changed';
    throw writes.length === 0 ? error : withoutInboxRow(error, writes.length);
  }
}

/** The inbox row, and the pointer of a rejected message. */
const OWN_ACTIONS = 2;

/** The index of the last sequence in the transaction, after the row and its pointer. */
const RAISED_AT = 2;

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

/**
 * REJECTED -> REJECTED, with the pointer that lists it: repairs a message that no list shows. As after each rejection, row and pointer stay until
 * an operator decides, unless the message could not be read.
 *
 * @param row - as it was read
 * @returns `false` if it is listed, or was claimed, rejected again or ended since; nothing was changed
 */
export async function listRejected(
  { table, clock = systemClock, random = systemRandomBytes }: TransactDeps,
  { consumer, eventId }: { readonly consumer: string; readonly eventId: string },
  row: RejectedRow,
): Promise<boolean> {
  const inbox: InboxAccess = { table, clock, random, consumer };
  const from = asRejected(row);
  const change = changeBy(inbox, from, listedAgain(inbox, row));
  const mayExpire = isUnreadableId(eventId);
  const pointer = rejectedPointer(consumer, eventId, {
    ...change.set,
    expiresAt: mayExpire ? row.expiresAt : undefined,
  });
  const kept = { ...change, remove: mayExpire ? [] : ['expiresAt'] };
  const unlessListed = { Item: pointer, ConditionExpression: 'attribute_not_exists(PK)' };
  try {
    const { ok } = await transactRow(inbox, eventId, kept, conditionOf(inbox, from), [{ Put: unlessListed }]);
    return ok;
  } catch (error) {
    const isListed =
      isMailroomError(error, 'TRANSACTION_CANCELLED') && error.reasons[1]?.code === 'ConditionalCheckFailed';
    if (isListed) return false;
    throw error;
  }
}
