import {
  type Commit,
  type EventDraft,
  type Item,
  isMailroomError,
  type Key,
  nextVersion,
  type VersionedWrite,
} from '../../runtime/index.ts';
import {
  PaymentCancelled,
  PaymentCaptured,
  PaymentDeclined,
  PaymentRefunded,
  PaymentRejected,
} from '../events.ts';

/** The amount of a charge, and the customer. */
export interface Invoice {
  readonly orderId: string;
  readonly customerId: string;
  readonly amountCents: number;
}

/** The reason of a payment's end. */
export interface Ended {
  /** The order was not paid in time. @default false */
  readonly expired?: boolean | undefined;
}

/** A payment decided by the bank, by inventory, by the expiry of the order or by an operator. */
export type DecidedPayment = Ended &
  (
    | (Invoice & { readonly status: 'captured'; readonly chargeId: string })
    | (Invoice & { readonly status: 'declined'; readonly reason: string })
    | (Invoice & { readonly status: 'refunded'; readonly chargeId: string; readonly refundId: string })
    | (Invoice & {
        readonly status: 'rejected';
        readonly chargeId?: string | undefined;
        readonly reason: string;
      })
    | { readonly status: 'cancelled'; readonly orderId: string }
  );

/**
 * The payment's row, `PAYMENT#<orderId>` / `PAYMENT`. Three messages change it, in any order: `OrderPlaced` charges, and after
 * `StockRejected` or `OrderExpired` no money may be kept, except that a payment captured before `OrderExpired` was made in time. Each
 * step is conditional on the status before it, so one of them decides and the others see the decision.
 *
 *     (no row) ── OrderPlaced ──> charging ─┬─ the bank charged ──> captured ── StockRejected ──> refunded
 *        │                            │     └─ it declined ───────> declined
 *        │               StockRejected, OrderExpired
 *        │                            └────> cancelling ─┬─ the bank charged ────────> refunded
 *        │                                               ├─ it declined ─────────────> declined
 *        │                                               └─ it is still not approved ─> cancelled
 *        └── StockRejected, OrderExpired ──> cancelled (OrderPlaced then charges nothing)
 *
 * An operator who rejects `OrderPlaced` ends what is not decided: no row, `charging` and `cancelling` become `rejected`. If the bank had
 * charged, `PaymentRejected` says so, and its handler refunds: `rejected` becomes `refunded`.
 *
 * `charging` is written before the bank is called, so `cancelled` means that it never will be.
 */
export type Payment = DecidedPayment | (Invoice & Ended & { readonly status: 'charging' | 'cancelling' });

/** The version of the row's shape. */
const PAYMENT_SCHEMA = 1;

/** Makes the key of a payment's row. */
export function paymentKey(orderId: string): Key {
  return { PK: `PAYMENT#${orderId}`, SK: 'PAYMENT' };
}

/** Returns the payment in a row that {@link putPayment} wrote. */
export function paymentOfRow(row: Item | undefined): Payment | undefined {
  return row as unknown as Payment | undefined;
}

/**
 * Writes a payment's row.
 *
 * @param from - the required current status; absent: the row must not exist
 */
export function putPayment(payment: Payment, from?: Payment['status']): VersionedWrite {
  const condition =
    from === undefined
      ? { ConditionExpression: 'attribute_not_exists(PK)' }
      : {
          ConditionExpression: '#status = :from',
          ExpressionAttributeNames: { '#status': 'status' },
          ExpressionAttributeValues: { ':from': from },
        };
  return {
    Put: {
      Item: { ...paymentKey(payment.orderId), schema: PAYMENT_SCHEMA, ...payment },
      ...condition,
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    },
  };
}

/** Returns the payment that refused a commit whose first write was {@link putPayment}; otherwise `undefined`. */
export function paymentThatRefused(error: unknown): Payment | undefined {
  return isMailroomError(error, 'TRANSACTION_CANCELLED') ? paymentOfRow(error.reasons[0]?.item) : undefined;
}

/**
 * Makes the commit of a decision: the payment's row, whose version numbers the payment's events, and the event that announces it.
 *
 * @param from - the required current status, as for {@link putPayment}
 * @param row - the row's version, if an earlier decision was announced: its event's number @default none
 */
export function decide(payment: DecidedPayment, from?: Payment['status'], row?: Item): Commit {
  const { write, version } = nextVersion(putPayment(payment, from), { row });
  return { writes: [write], events: [announcement(payment, version)] };
}

function announcement(payment: DecidedPayment, sequence: number): EventDraft {
  const { orderId: aggregateId } = payment;
  switch (payment.status) {
    case 'captured':
      return PaymentCaptured.create({ aggregateId, sequence, data: withoutStatus(payment) });
    case 'declined':
      return PaymentDeclined.create({ aggregateId, sequence, data: withoutStatus(payment) });
    case 'refunded':
      return PaymentRefunded.create({ aggregateId, sequence, data: withoutStatus(payment) });
    case 'rejected':
      return PaymentRejected.create({ aggregateId, sequence, data: withoutStatus(payment) });
    case 'cancelled':
      return PaymentCancelled.create({ aggregateId, sequence, data: withoutStatus(payment) });
  }
}

function withoutStatus<P extends DecidedPayment>({ status: _, ...data }: P): Omit<P, 'status'> {
  return data;
}
