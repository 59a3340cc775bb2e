import { isMailroomError, TransactionCancelled } from '../../base/errors.ts';
import type { Claim, InboxRefusal, Message } from '../../inbox/inbox.ts';
import { admissionOf, fenceLost, isOurs, refusalOf, rowOf } from '../../inbox/inbox-admission.ts';
import { NO_ROW, ours } from '../../inbox/inbox-conditions.ts';
import { processed, processedUnclaimed, resultJson } from '../../inbox/inbox-transitions.ts';
import { mintToken } from '../event-id.ts';
import { inboxKey } from '../keys.ts';
import { applied, Overtaken } from '../last-sequence.ts';
import { transactWithRetry } from '../retry.ts';
import { conditionalUpdate } from '../row-update.ts';
import type { Item, TransactAction } from '../table.ts';
import type { InboxContext } from './inbox-context.ts';
import { changeBy, conditionOf, writeTransition, writeUnderFence } from './inbox-writes.ts';
import { isLastRefused, raising } from './last-sequence.ts';

/**
 * The work is done: PROCESSED, and the last applied sequence of an ordered message with it. Returns the refusal if the write was refused.
 *
 * @throws {@link Overtaken} if the last applied sequence has changed
 */
export async function completeMessage(
  inbox: InboxContext,
  claim: Claim,
  result: unknown,
): Promise<InboxRefusal | undefined> {
  const done = processed(inbox, { result: resultJson(result) });
  try {
    return await writeUnderFence(inbox, claim, done, raising(inbox.clock, applied(claim.message)));
  } catch (error) {
    throw isLastRefused(error) ? new Overtaken(inbox.clock.now()) : error;
  }
}

/** A later event was applied first: PROCESSED without a run of the handler. Returns the refusal if the write was refused. */
export function supersedeMessage(
  inbox: InboxContext,
  claim: Claim,
  supersededBy: number,
): Promise<InboxRefusal | undefined> {
  return writeUnderFence(inbox, claim, processed(inbox, { supersededBy }));
}

/**
 * Domain writes, events and PROCESSED in one transaction, under the claim's fence.
 *
 * @throws `FENCE_LOST` if this worker has lost the message, {@link Overtaken} if the last applied sequence has changed,
 * `TRANSACTION_CANCELLED` if one of `writes` was refused
 */
export async function commitMessage(
  inbox: InboxContext,
  claim: Claim,
  writes: readonly TransactAction[],
): Promise<undefined> {
  const { message, fence } = claim;
  const commitId = mintToken(inbox.random);
  const done = processed(inbox, { commitId });
  let item: Item | undefined;
  try {
    const actions = [...raising(inbox.clock, applied(message)), ...writes];
    const written = await writeTransition(inbox, message.eventId, ours(claim), done, actions);
    if (written.ok) return;
    item = written.item;
  } catch (error) {
    if (isMailroomError(error, 'TRANSACTION_CANCELLED')) throw refusedBy(inbox, message, error, writes);
    // The response was lost: only the row shows whether the transaction happened.
    item = await inbox.table.get(inboxKey(inbox.consumer, message.eventId), { consistent: true });
    if (isOurs(rowOf(item), fence)) throw error;
  }
  const row = rowOf(item);
  if (row?.status === 'PROCESSED' && row.fence === fence && row.commitId === commitId) return; // this commit wrote it
  throw fenceLost(claim, refusalOf(inbox, message, item));
}

/**
 * As {@link commitMessage}, without a claim, for a message without a row. Returns the refusal if the write was refused; `open` if
 * the message must be claimed first.
 *
 * @throws {@link Overtaken} if the last applied sequence has changed, `TRANSACTION_CANCELLED` if one of `writes` was refused
 */
export async function commitUnclaimed(
  inbox: InboxContext,
  message: Message,
  writes: readonly TransactAction[],
  attempt: number,
): Promise<InboxRefusal | { readonly status: 'open' } | undefined> {
  const done = processedUnclaimed(inbox, message, attempt, mintToken(inbox.random));
  try {
    const actions = [...raising(inbox.clock, applied(message)), ...writes];
    const written = await writeTransition(inbox, message.eventId, NO_ROW, done, actions);
    if (written.ok) return undefined;
    const { status } = admissionOf(inbox, message, rowOf(written.item));
    const final = status === 'processed' || status === 'rejected' || status === 'leased';
    return final ? refusalOf(inbox, message, written.item) : { status: 'open' };
  } catch (error) {
    if (isMailroomError(error, 'TRANSACTION_CANCELLED')) throw refusedBy(inbox, message, error, writes);
    throw error;
  }
}

/**
 * As {@link commitUnclaimed}, for several messages without a row, each with another event. Every row requires that there was none: of all
 * transactions that contain a message, at most one commits, whatever the other messages in them. Returns the messages that have a row, if any.
 *
 * @throws `TRANSACTION_CANCELLED` if one of `writes` was refused, and no row
 */
export async function commitBatch(
  inbox: InboxContext,
  messages: readonly Message[],
  writes: readonly TransactAction[],
): Promise<{ readonly status: 'rows'; readonly of: readonly Message[] } | undefined> {
  const fence = mintToken(inbox.random);
  const condition = conditionOf(inbox, NO_ROW);
  const rows = messages.map((message): TransactAction => {
    const change = changeBy(inbox, NO_ROW, processedUnclaimed(inbox, message, 1, fence));
    return { Update: conditionalUpdate(inboxKey(inbox.consumer, message.eventId), change, condition) };
  });
  try {
    await transactWithRetry(inbox, [...rows, ...writes]);
    return undefined;
  } catch (error) {
    if (!isMailroomError(error, 'TRANSACTION_CANCELLED')) throw error;
    const of = messages.filter((_, i) => error.reasons[i]?.code === 'ConditionalCheckFailed');
    if (of.length > 0) return { status: 'rows', of };
    throw withoutInboxRow(error, writes.length);
  }
}

/** The last applied sequence decides first: the handler's conditions may have failed because of the event that overtook this one. */
function refusedBy(
  { clock }: InboxContext,
  { place }: Message,
  error: TransactionCancelled,
  writes: readonly TransactAction[],
): Overtaken | TransactionCancelled {
  if (place !== undefined && isLastRefused(error)) return new Overtaken(clock.now());
  return withoutInboxRow(error, writes.length);
}

/** The cancellation as the handler's own transaction would report it: with the reasons of its writes only. */
export function withoutInboxRow(error: TransactionCancelled, writes: number): TransactionCancelled {
  return new TransactionCancelled(error.reasons.slice(error.reasons.length - writes), { cause: error });
}
