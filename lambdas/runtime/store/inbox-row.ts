import type { Clock } from '../clock.ts';
import { type CancellationReason, FenceLost, isConditionFailed, isTransactionCancelled } from '../errors.ts';
import type { Redact } from '../redaction.ts';
import type { RandomBytes } from './event-id.ts';
import {
  type Claim,
  type Conditions,
  type Message,
  MINE,
  mine,
  type Refusal,
  rowOf,
} from './inbox-conditions.ts';
import { transactWithRetry } from './retry.ts';
import { type InboxRow, inboxKey, rejectedKey } from './rows.ts';
import type { Item, Key, Table, TransactAction, Update } from './table.ts';

/** What the inbox of one consumer is made of. */
export interface InboxDeps {
  readonly table: Table;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly consumer: string;
  readonly leaseMs: number;
  readonly inboxRetentionDays: number;
  readonly inboxSince?: number | undefined;
  /** Applied to the text of an error before a row holds it. @default the text as it is */
  readonly redact?: Redact | undefined;
}

/** The two ways in which an inbox row is written once it is there: alone under its fence, or with others in a transaction. */
export interface InboxRows {
  keyOf(message: Message): Key;
  /** The key of the pointer that lists a message while it is REJECTED. */
  pointerKeyOf(message: Message): Key;
  /**
   * One transition under the claim's fence.
   *
   * @param became - whether the row, under our fence still, says that this very transition happened
   * @returns `undefined` when it happened, now or by an answer that was lost; otherwise what the row says instead
   */
  underFence(
    claim: Claim,
    update: string,
    values: Item,
    became: (row: InboxRow) => boolean,
    names?: Record<string, string>,
  ): Promise<Refusal | undefined>;
  /**
   * A transaction whose first action is the inbox row's. The inbox row is judged first: its refusal is returned;
   * a refusal of another action is thrown.
   *
   * @param values - those of the condition; they join the update's own
   * @throws `TRANSACTION_CANCELLED`, with the reasons of all actions
   */
  transact(
    message: Message,
    update: RowUpdate & Pick<Update, 'ConditionExpression'>,
    values: Item,
    others: readonly TransactAction[],
  ): Promise<CancellationReason | undefined>;
}

/** What a transition changes on the row. */
export type RowUpdate = Pick<Update, 'UpdateExpression' | 'ExpressionAttributeNames'> & {
  readonly ExpressionAttributeValues: Item;
};

/** Makes the rows of one consumer's inbox. */
export function createInboxRows(deps: InboxDeps, { refusalOf }: Conditions): InboxRows {
  const { table, clock, random, consumer } = deps;
  const keyOf = (message: Message) => inboxKey(consumer, message.eventId);
  const pointerKeyOf = (message: Message) => rejectedKey(consumer, message.eventId);

  const underFence: InboxRows['underFence'] = async (claim, update, values, became, names = {}) => {
    try {
      await table.write({
        Update: {
          Key: { ...keyOf(claim.message) },
          UpdateExpression: update,
          ConditionExpression: MINE,
          ExpressionAttributeNames: { '#status': 'status', ...names },
          ExpressionAttributeValues: { ...values, ...mine(claim) },
          ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
        },
      });
      return undefined;
    } catch (error) {
      if (!isConditionFailed(error)) throw error;
      const row = rowOf(error.item);
      if (row !== undefined && row.fence === claim.fence && became(row)) return undefined;
      return refusalOf(claim.message, error.item);
    }
  };

  const transact: InboxRows['transact'] = async (message, update, values, others) => {
    const own: Update = {
      ...update,
      Key: { ...keyOf(message) },
      ExpressionAttributeValues: { ...update.ExpressionAttributeValues, ...values },
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    };
    try {
      await transactWithRetry({ table, clock, random }, [{ Update: own }, ...others]);
      return undefined;
    } catch (error) {
      if (isTransactionCancelled(error) && error.reasons[0]?.code === 'ConditionalCheckFailed')
        return error.reasons[0];
      throw error;
    }
  };

  return { keyOf, pointerKeyOf, underFence, transact };
}

/** The error of a worker that wants to write under a claim that is its own no more. */
export function fenceLost(claim: Claim, refusal: Refusal): FenceLost {
  return new FenceLost(
    `Message ${claim.message.eventId} is not this worker's any more (it is ${refusal.status}); whatever it writes under its old claim is refused`,
  );
}
