import {
  type DynamoDBDocumentClient,
  GetCommand,
  PutCommand,
  TransactWriteCommand,
  type TransactWriteCommandInput,
  UpdateCommand,
} from '@aws-sdk/lib-dynamodb';
import type { BankRequest, ChargeRequest, RefundRequest } from './bank-request.ts';

/** A charge to make. */
interface BankCharge extends ChargeRequest {
  readonly chargeId: string;
  /** Epoch milliseconds. */
  readonly chargedAt: number;
}

/** A refund to make. */
interface BankRefund extends RefundRequest {
  readonly refundId: string;
  /** Epoch milliseconds. */
  readonly refundedAt: number;
}

/** The result of a request that the bank acted on. */
export type LedgerOutcome =
  | { readonly kind: 'charged'; readonly chargeId: string }
  | { readonly kind: 'refunded'; readonly refundId: string }
  /** The key was used before for the same request: these are its results, and nothing was done now. */
  | { readonly kind: 'replayed'; readonly chargeId?: string; readonly refundId?: string }
  /** The key was used before for another order, amount or operation. */
  | { readonly kind: 'key-reused' }
  | { readonly kind: 'no-such-charge' }
  | { readonly kind: 'more-than-captured' };

/** The bank's record of every request, charge and refund. */
export interface BankLedger {
  /** Records an incoming request. @returns its number among the requests of its order, from 1 */
  received(request: BankRequest, at: number): Promise<number>;
  /** Records the outcome of a request. */
  answered(
    orderId: string,
    number: number,
    outcome: LedgerOutcome['kind'] | 'declined' | 'failed' | 'not-approved' | 'unknown-customer',
  ): Promise<void>;
  /** Makes a charge, ignoring the key. */
  charge(charge: BankCharge): Promise<LedgerOutcome>;
  /** Makes a charge, unless the key was used before. */
  chargeOncePerKey(charge: BankCharge): Promise<LedgerOutcome>;
  /** Refunds a charge or a part of its balance, unless the key was used before. */
  refundOncePerKey(refund: BankRefund): Promise<LedgerOutcome>;
}

type TransactItems = NonNullable<TransactWriteCommandInput['TransactItems']>;

interface LedgerDeps {
  readonly documents: DynamoDBDocumentClient;
  readonly tableName: string;
}

/**
 * The ledger in the bank's own table.
 *
 * | item | PK | SK |
 * | --- | --- | --- |
 * | request | `REQUEST#<orderId>` | the number of the request, six digits |
 * | charge, and what is left of it | `CHARGE#<orderId>` | the charge's id |
 * | refund | `REFUND#<orderId>` | the refund's id |
 * | used key | `KEY#<idempotencyKey>` | `KEY` |
 * | requests so far | `COUNTER#<orderId>` | `COUNTER` |
 */
export function dynamoLedger(deps: LedgerDeps): BankLedger {
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
      const charged = { kind: 'charged', chargeId: charge.chargeId } as const;
      const outcome = await oncePerKey(deps, charge, charged, [
        { Put: { TableName, Item: chargeRow(charge) } },
      ]);
      return outcome ?? busy();
    },

    async refundOncePerKey(refund) {
      const { orderId, chargeId, amountCents, refundId } = refund;
      const Key = { PK: `CHARGE#${orderId}`, SK: chargeId };
      const outcome = await oncePerKey(deps, refund, { kind: 'refunded', refundId }, [
        {
          Update: {
            TableName,
            Key,
            UpdateExpression: 'SET leftCents = leftCents - :amount',
            ConditionExpression: 'leftCents >= :amount',
            ExpressionAttributeValues: { ':amount': amountCents },
          },
        },
        { Put: { TableName, Item: { PK: `REFUND#${orderId}`, SK: refundId, ...refund } } },
      ]);
      if (outcome !== undefined) return outcome;
      const { Item: charge } = await documents.send(new GetCommand({ TableName, Key, ConsistentRead: true }));
      if (charge === undefined) return { kind: 'no-such-charge' };
      return charge.leftCents < amountCents ? { kind: 'more-than-captured' } : busy();
    },
  };
}

/** Performs an action and uses up its key, or finds what the key was used for. @returns `undefined` if neither happened */
async function oncePerKey(
  { documents, tableName: TableName }: LedgerDeps,
  { operation, idempotencyKey, orderId, amountCents }: BankRequest,
  outcome: LedgerOutcome,
  writes: TransactItems,
): Promise<LedgerOutcome | undefined> {
  const Key = { PK: `KEY#${idempotencyKey}`, SK: 'KEY' };
  const { kind: _, ...ids } = outcome;
  const Item = { ...Key, operation, orderId, amountCents, ids };
  const useKey = { Put: { TableName, Item, ConditionExpression: 'attribute_not_exists(PK)' } };
  try {
    await documents.send(new TransactWriteCommand({ TransactItems: [useKey, ...writes] }));
    return outcome;
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'TransactionCanceledException') throw error;
    const { Item: used } = await documents.send(new GetCommand({ TableName, Key, ConsistentRead: true }));
    if (used === undefined) return undefined;
    const same = used.operation === operation && used.orderId === orderId && used.amountCents === amountCents;
    return same ? { kind: 'replayed', ...used.ids } : { kind: 'key-reused' };
  }
}

/** Another request of the same order interfered. The caller gets no decision and retries. */
function busy(): never {
  throw new Error('The ledger is busy with another request of this order');
}

function requestKey(orderId: string, number: number) {
  return { PK: `REQUEST#${orderId}`, SK: String(number).padStart(6, '0') };
}

function chargeRow(charge: BankCharge) {
  const { orderId, chargeId, amountCents } = charge;
  return { PK: `CHARGE#${orderId}`, SK: chargeId, ...charge, leftCents: amountCents };
}
