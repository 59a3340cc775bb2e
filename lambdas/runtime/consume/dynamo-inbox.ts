import { isMailroomError } from '../base/errors.ts';
import type { Message } from '../inbox/inbox.ts';
import { rowOf } from '../inbox/inbox-admission.ts';
import { cutOff, failed, outOfTime, released } from '../inbox/inbox-transitions.ts';
import type { CausingEvent } from '../outbox/outbox-entry.ts';
import { claimMessage } from '../store/dynamo/inbox-claim.ts';
import {
  commitMessage,
  commitUnclaimed,
  completeMessage,
  supersedeMessage,
} from '../store/dynamo/inbox-completion.ts';
import type { InboxContext } from '../store/dynamo/inbox-context.ts';
import { finishEffect, startEffect } from '../store/dynamo/inbox-effect.ts';
import { openInbox } from '../store/dynamo/inbox-history.ts';
import { renewLease } from '../store/dynamo/inbox-lease.ts';
import { rejectMessage, rejectUnclaimed } from '../store/dynamo/inbox-rejection.ts';
import { writeUnderFence } from '../store/dynamo/inbox-writes.ts';
import { readLastSequence } from '../store/dynamo/last-sequence.ts';
import { takeToken } from '../store/dynamo/limit-bucket.ts';
import type { Commit, Outbox } from '../store/dynamo/outbox.ts';
import { checkTransaction, eventCount } from '../store/dynamo/transaction-checks.ts';
import type { FailedHint } from '../store/inbox-row.ts';
import { failedKey, inboxKey } from '../store/keys.ts';
import { Overtaken } from '../store/last-sequence.ts';
import { expiresAt } from '../store/row-expiry.ts';
import { SCHEMA } from '../store/row-schema.ts';
import type { TransactAction } from '../store/table.ts';
import type { CommitEnd, Inbox } from './inbox-port.ts';
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

  async function commitEnd<Refusal>(
    made: () => Promise<readonly TransactAction[]>,
    write: (actions: readonly TransactAction[]) => Promise<Refusal | undefined>,
  ): Promise<CommitEnd | Refusal> {
    let sent: readonly TransactAction[] | undefined;
    try {
      sent = await made();
      return (await write(sent)) ?? { status: 'committed', events: eventCount(sent) };
    } catch (error) {
      const wroteNothing = sent === undefined || isCommitRefused(error);
      const isOutage = sent !== undefined && isOutageOf(sent, table.name, error);
      return { status: 'failed', error, wroteNothing, isOutage };
    }
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
    takeToken: (bucket, asked) => takeToken(inbox, bucket, asked),
    commit: (claim, work, event, sending) =>
      commitEnd<never>(
        async () => {
          const actions = await actionsOf(await work(undefined), event, claim.message, 1);
          sending();
          return actions;
        },
        (actions) => commitMessage(inbox, claim, actions),
      ),
    commitUnclaimed: (message, attempt, work, event, inTime) =>
      commitEnd(
        // Two more actions: the inbox row, and the pointer of a rejected message that is readmitted.
        async () => actionsOf(await inTime(work(undefined)), event, message, 2),
        (actions) => commitUnclaimed(inbox, message, actions, attempt),
      ),
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

/** Only a refusal proves that a transaction which was sent wrote nothing. */
function isCommitRefused(error: unknown): boolean {
  return (
    error instanceof Overtaken ||
    isMailroomError(error, 'TRANSACTION_CANCELLED') ||
    isMailroomError(error, 'FENCE_LOST')
  );
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
