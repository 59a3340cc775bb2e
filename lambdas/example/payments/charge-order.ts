import { type EventDraft, type Handler, type Item, leased } from '../../runtime/index.ts';
import { OrderPlaced, PaymentCaptured, PaymentDeclined } from '../events.ts';
import type { Bank, ChargeResult } from './bank.ts';

/** The version of the payment row's shape. */
const PAYMENT_SCHEMA = 1;

/**
 * Charges each placed order once.
 *
 * The bank is outside DynamoDB, so the charge is a `ctx.once`: it runs under a stable key, and once its result is
 * stored it does not run again. Then the payment, its event and the message's PROCESSED go into one transaction.
 * A bank that declines has decided: the payment is stored as declined and announced, as any other result. Only
 * a bank that did not decide makes the message come again.
 */
export function chargeOrder(deps: { readonly bank: Bank }): Handler {
  return leased(OrderPlaced, async ({ data }, ctx) => {
    const { orderId, customerId, totalCents: amountCents } = data;
    const result = await ctx.once('charge', (idempotencyKey, signal) =>
      deps.bank.charge({ orderId, customerId, amountCents, idempotencyKey }, signal),
    );
    const payment = { orderId, customerId, amountCents };
    await ctx.commit({
      writes: [
        { Put: { Item: paymentRow(payment, result), ConditionExpression: 'attribute_not_exists(PK)' } },
      ],
      events: [announce(payment, result)],
    });
  });
}

interface Payment {
  readonly orderId: string;
  readonly customerId: string;
  readonly amountCents: number;
}

function paymentRow(payment: Payment, result: ChargeResult): Item {
  return { PK: `PAYMENT#${payment.orderId}`, SK: 'PAYMENT', schema: PAYMENT_SCHEMA, ...payment, ...result };
}

function announce(payment: Payment, result: ChargeResult): EventDraft {
  const aggregateId = payment.orderId;
  return result.outcome === 'captured'
    ? PaymentCaptured.create({ aggregateId, data: { ...payment, chargeId: result.chargeId } })
    : PaymentDeclined.create({ aggregateId, data: { ...payment, reason: result.reason } });
}
