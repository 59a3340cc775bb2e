import { isMailroomError } from '../base/errors.ts';
import type { InboxContext, Message } from '../inbox/inbox.ts';
import { rowOf } from '../inbox/inbox-admission.ts';
import { claimMessage } from '../inbox/inbox-claim.ts';
import {
  commitMessage,
  commitUnclaimed,
  completeMessage,
  supersedeMessage,
} from '../inbox/inbox-completion.ts';
import { finishEffect, startEffect } from '../inbox/inbox-effect.ts';
import { openInbox } from '../inbox/inbox-history.ts';
import { renewLease } from '../inbox/inbox-lease.ts';
import { rejectMessage, rejectUnclaimed } from '../inbox/inbox-rejection.ts';
import { cutOff, failed, outOfTime, released } from '../inbox/inbox-transitions.ts';
import { writeUnderFence } from '../inbox/inbox-writes.ts';
import type { Commit, Outbox } from '../outbox/outbox.ts';
import type { CausingEvent } from '../outbox/outbox-entry.ts';
import { checkTransaction, eventCount } from '../outbox/transaction-checks.ts';
import type { FailedHint } from '../store/inbox-row.ts';
import { failedKey, inboxKey } from '../store/keys.ts';
import { readLastSequence } from '../store/last-sequence.ts';
import { expiresAt } from '../store/row-expiry.ts';
import { SCHEMA } from '../store/row-schema.ts';
import type { TransactAction } from '../store/table.ts';
import type { Inbox } from './inbox-port.ts';
import { isOutage, isOutageOf } from './outage.ts';

/** TTL may delete a hint this many days after the next attempt, so that a hint that was not removed does not stay. */
const HINT_SPARE_DAYS = 1;

/** The inbox of a consumer in the Mailroom table. */
export function dynamoInbox(inbox: InboxContext, outbox: Pick<Outbox, 'entries'>): Inbox {
  const { table, clock, consumer } = inbox;

  /** @param own - the number of Mailroom's own actions, besides the last sequence of an ordered message */
  async function actionsOf(
    { writes = [], events = [] }: Commit,
    cause: CausingEvent,
    { place }: Message,
    own: number,
  ): Promise<TransactAction[]> {
    const actions = [...writes, ...(await outbox.entries(events, cause))];
    checkTransaction(actions, { table, clock, ownActions: place === undefined ? own : own + 1 });
    return actions;
  }

  return {
    rules: inbox,
    open: () => openInbox(inbox),
    read: async (eventId) => rowOf(await table.get(inboxKey(consumer, eventId), { consistent: true })),
    lastSequence: (key) => readLastSequence(inbox, key),
    claim: (message, options) => claimMessage(inbox, message, options),
    renew: (claim) => renewLease(inbox, claim),
    complete: (claim, result) => completeMessage(inbox, claim, result),
    supersede: (claim, by) => supersedeMessage(inbox, claim, by),
    fail: (claim, ...end) => writeUnderFence(inbox, claim, failed(inbox, claim, ...end)),
    release: (claim, ...end) => writeUnderFence(inbox, claim, released(inbox, claim, ...end)),
    cutOff: (claim, ...end) => writeUnderFence(inbox, claim, cutOff(inbox, claim, ...end)),
    markOutOfTime: (claim, ...end) => writeUnderFence(inbox, claim, outOfTime(inbox, ...end)),
    reject: (claim, error, effects) => rejectMessage(inbox, claim, error, effects),
    rejectUnclaimed: (message, error) => rejectUnclaimed(inbox, message, error),
    startEffect: (call) => startEffect(inbox, call),
    finishEffect: (call, end) => finishEffect(inbox, call, end),
    commit: async (claim, work, event, { sending, outage }) => {
      const actions = await actionsOf(await work(undefined), event, claim.message, 1);
      sending();
      try {
        await commitMessage(inbox, claim, actions);
      } catch (error) {
        if (isOutageOf(actions, table.name, error)) outage(error);
        throw error;
      }
      return eventCount(actions);
    },
    commitUnclaimed: async (message, attempt, work, event, { outage, inTime }) => {
      // Two more actions: the inbox row, and the pointer of a rejected message that is readmitted.
      const actions = await actionsOf(await inTime(work(undefined)), event, message, 2);
      try {
        const refusal = await commitUnclaimed(inbox, message, actions, attempt);
        return refusal ?? { status: 'committed', events: eventCount(actions) };
      } catch (error) {
        if (isOutageOf(actions, table.name, error)) outage(error);
        throw error;
      }
    },
    putHint: (eventId, retryAt) => {
      const hint: FailedHint = {
        ...failedKey(consumer, eventId),
        schema: SCHEMA,
        failedAt: clock.now(),
        expiresAt: expiresAt(retryAt, HINT_SPARE_DAYS),
      };
      return table.write({ Put: { Item: { ...hint } } });
    },
    removeHint: (eventId) => table.write({ Delete: { Key: { ...failedKey(consumer, eventId) } } }),
    isOutage,
    isConflict: isConditionRefused,
  };
}

function isConditionRefused(error: unknown): boolean {
  if (!isMailroomError(error, 'TRANSACTION_CANCELLED')) return false;
  const codes = error.reasons.map((reason) => reason.code);
  return (
    codes.includes('ConditionalCheckFailed') &&
    codes.every(
      (code) => code === 'None' || code === 'ConditionalCheckFailed' || code === 'TransactionConflict',
    )
  );
}
