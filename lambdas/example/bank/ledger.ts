import {
  type DynamoDBDocumentClient,
  GetCommand,
  PutCommand,
  TransactWriteCommand,
  UpdateCommand,
} from '@aws-sdk/lib-dynamodb';
import type { ChargeRequest } from './bank.ts';

/** A charge that is about to be made. */
interface Charge extends ChargeRequest {
  readonly chargeId: string;
  /** Epoch milliseconds. */
  readonly chargedAt: number;
}

/** What became of a charge. */
type ChargeOutcome =
  | { readonly kind: 'charged'; readonly chargeId: string }
  /** The key had been used for the same charge: this is that charge, and none was made now. */
  | { readonly kind: 'replayed'; readonly chargeId: string }
  /** The key had been used for another order or amount. */
  | { readonly kind: 'key-reused' };

/** The bank's memory of every request that it got and of every charge that it made. */
export interface Ledger {
  /** Notes a request as it comes in. @returns which request of its order it is, from 1 */
  received(request: ChargeRequest, at: number): Promise<number>;
  /** Notes how a request ended. */
  answered(
    orderId: string,
    number: number,
    outcome: ChargeOutcome['kind'] | 'declined' | 'failed',
  ): Promise<void>;
  /** Charges, whatever the key. */
  charge(charge: Charge): Promise<ChargeOutcome>;
  /** Charges unless the key was used before. */
  chargeOncePerKey(charge: Charge): Promise<ChargeOutcome>;
}

/**
 * The ledger in the bank's own table.
 *
 * | item | PK | SK |
 * | --- | --- | --- |
 * | request | `REQUEST#<orderId>` | the number of the request, six digits |
 * | charge | `CHARGE#<orderId>` | the charge's id |
 * | used key | `KEY#<idempotencyKey>` | `KEY` |
 * | requests so far | `COUNTER#<orderId>` | `COUNTER` |
 */
export function dynamoLedger(deps: {
  readonly documents: DynamoDBDocumentClient;
  readonly tableName: string;
}): Ledger {
  const { documents, tableName: TableName } = deps;

  return {
    async received(request, at) {
      const { Attributes } = await documents.send(
        new UpdateCommand({
          TableName,
          Key: { PK: `COUNTER#${request.orderId}`, SK: 'COUNTER' },
          UpdateExpression: 'ADD requests :one',
          ExpressionAttributeValues: { ':one': 1 },
          ReturnValues: 'UPDATED_NEW',
        }),
      );
      const number = Number(Attributes?.requests);
      const Item = {
        ...requestKey(request.orderId, number),
        ...request,
        receivedAt: at,
        outcome: 'received',
      };
      await documents.send(new PutCommand({ TableName, Item }));
      return number;
    },

    async answered(orderId, number, outcome) {
      await documents.send(
        new UpdateCommand({
          TableName,
          Key: requestKey(orderId, number),
          UpdateExpression: 'SET outcome = :outcome',
          ExpressionAttributeValues: { ':outcome': outcome },
        }),
      );
    },

    async charge(charge) {
      await documents.send(new PutCommand({ TableName, Item: chargeRow(charge) }));
      return { kind: 'charged', chargeId: charge.chargeId };
    },

    async chargeOncePerKey(charge) {
      const Key = { PK: `KEY#${charge.idempotencyKey}`, SK: 'KEY' };
      const { orderId, amountCents, chargeId } = charge;
      const Item = { ...Key, orderId, amountCents, chargeId };
      try {
        await documents.send(
          new TransactWriteCommand({
            TransactItems: [
              { Put: { TableName, Item, ConditionExpression: 'attribute_not_exists(PK)' } },
              { Put: { TableName, Item: chargeRow(charge) } },
            ],
          }),
        );
        return { kind: 'charged', chargeId };
      } catch (error) {
        if (!(error instanceof Error) || error.name !== 'TransactionCanceledException') throw error;
        const used = await documents.send(new GetCommand({ TableName, Key, ConsistentRead: true }));
        if (used.Item === undefined) throw error;
        const same = used.Item.orderId === orderId && used.Item.amountCents === amountCents;
        return same ? { kind: 'replayed', chargeId: used.Item.chargeId } : { kind: 'key-reused' };
      }
    },
  };
}

function requestKey(orderId: string, number: number) {
  return { PK: `REQUEST#${orderId}`, SK: String(number).padStart(6, '0') };
}

function chargeRow(charge: Charge) {
  return { PK: `CHARGE#${charge.orderId}`, SK: charge.chargeId, ...charge };
}
