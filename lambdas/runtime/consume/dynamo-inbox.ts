import { isMailroomError } from '../base/errors.ts';
import type { Message } from '../inbox/inbox.ts';
import { rowOf } from '../inbox/inbox-admission.ts';
import { cutOff, discardedAsStale, failed, outOfTime, released } from '../inbox/inbox-transitions.ts';
import { claimMessage } from '../store/dynamo/inbox-claim.ts';
import {
  commitBatch,
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
import { freePlace, takePlace } from '../store/dynamo/limit-place.ts';
import type { Outbox } from '../store/dynamo/outbox.ts';
import { checkTransaction, eventCount } from '../store/dynamo/transaction-checks.ts';
import type { FailedHint } from '../store/inbox-row.ts';
import { failedKey, inboxKey } from '../store/keys.ts';
import { Overtaken } from '../store/last-sequence.ts';
import { expiresAt } from '../store/row-expiry.ts';
import { SCHEMA } from '../store/row-schema.ts';
import type { TransactAction } from '../store/table.ts';
import { allCausedBy, type CausedCommit } from './batch-commit.ts';
import { COMMIT_MARGIN_MS, inTimeOf, payloadsLate } from './in-time.ts';
import type { CommitEnd, Inbox, InboxLimits } from './inbox-port.ts';
import { isOutage, isOutageOf } from './outage.ts';

/** TTL may delete a hint this many days after the next attempt, so that a hint that was not removed does not stay. */
const HINT_SPARE_DAYS = 1;

/**
 * The writes of a commit, and its events as rows.
 *
 * @param own - the number of Mailroom's own actions
 */
async function actionsOf(
  { table, clock, entries }: Pick<InboxContext, 'table' | 'clock'> & Pick<Outbox, 'entries'>,
  { writes = [], events }: CausedCommit,
  own: number,
): Promise<TransactAction[]> {
  const made = await Promise.all(events.map(({ draft, cause }) => entries([draft], cause)));
  const actions = [...writes, ...made.flat()];
  checkTransaction(actions, { table, clock, ownActions: own });
  return actions;
}

/** The inbox of a consumer in the Mailroom table. */
export function dynamoInbox(inbox: InboxContext, outbox: Pick<Outbox, 'entries'>): Inbox {
  const { table, clock, consumer } = inbox;
  const parts = { table, clock, entries: outbox.entries };

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
      return { status: 'failed', error, wroteNothing, isOutage: isOutageBy(sent, table.name, error) };
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
    discardStale: (claim) => writeUnderFence(inbox, claim, discardedAsStale(inbox)),
    fail: (claim, ...end) => writeUnderFence(inbox, claim, failed(inbox, claim, ...end)),
    release: (claim, ...end) => writeUnderFence(inbox, claim, released(inbox, claim, ...end)),
    cutOff: (claim, ...end) => writeUnderFence(inbox, claim, cutOff(inbox, claim, ...end)),
    markOutOfTime: (claim, ...end) => writeUnderFence(inbox, claim, outOfTime(inbox, ...end)),
    reject: (claim, error, effects) => rejectMessage(inbox, claim, error, effects),
    rejectUnclaimed: (message, error) => rejectUnclaimed(inbox, message, error),
    startEffect: (call) => startEffect(inbox, call),
    finishEffect: (call, end) => finishEffect(inbox, call, end),
    limits: limitsOf(inbox),
    commit: (claim, work, event, sending) =>
      commitEnd<never>(
        async () => {
          const wanted = allCausedBy(event, await work(undefined));
          const inTime = inTimeOf(clock, claim.endsBy, COMMIT_MARGIN_MS);
          const actions = await inTime(actionsOf(parts, wanted, ownActions(1, claim.message)), payloadsLate);
          sending();
          return actions;
        },
        (actions) => commitMessage(inbox, claim, actions),
      ),
    commitUnclaimed: (message, attempt, work, event, inTime) =>
      commitEnd(
        // Two more actions: the inbox row, and the pointer of a rejected message that is readmitted.
        async () => {
          const wanted = allCausedBy(event, await inTime(work(undefined)));
          return inTime(actionsOf(parts, wanted, ownActions(2, message)), payloadsLate);
        },
        (actions) => commitUnclaimed(inbox, message, actions, attempt),
      ),
    commitBatch: (messages, work, inTime) =>
      commitEnd(
        async () => inTime(actionsOf(parts, await work(), messages.length), payloadsLate),
        (actions) => commitBatch(inbox, messages, actions),
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

function limitsOf(inbox: InboxContext): InboxLimits {
  return {
    takeToken: (bucket, asked) => takeToken(inbox, bucket, asked),
    takePlace: (bucket, asked) => takePlace(inbox, bucket, asked),
    freePlace: (place) => freePlace(inbox, place),
  };
}

/** Before its transaction is sent, a commit meets only an outage of the payloads of its events. */
function isOutageBy(sent: readonly TransactAction[] | undefined, tableName: string, error: unknown): boolean {
  if (sent === undefined) return isMailroomError(error, 'PAYLOADS_UNAVAILABLE');
  return isOutageOf(sent, tableName, error);
}

/** The last sequence of an ordered message is one more. */
function ownActions(own: number, { place }: Message): number {
  return place === undefined ? own : own + 1;
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
