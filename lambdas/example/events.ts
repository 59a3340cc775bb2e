import * as z from 'zod/mini';
import { defineEvent } from '../runtime/index.ts';

/** The maximum number of items in an order: with its other writes, it must fit one transaction of 100 actions. */
export const ORDER_ITEMS_MAX = 50;

/** The maximum length of `customerId` and `sku`, characters. */
const NAME_LENGTH_MAX = 100;

/** The maximum quantity of one item in an order. */
export const QUANTITY_MAX = 10_000;

/** The maximum price of one piece, cents. With the limits above, a total stays a safe integer. */
export const UNIT_PRICE_MAX = 100_000_000;

const nameExpected = `must be a string of 1 to ${NAME_LENGTH_MAX} characters, without control characters`;
const quantityExpected = `must be a whole number from 1 to ${QUANTITY_MAX}`;
const unitPriceExpected = `must be a whole number of cents from 0 to ${UNIT_PRICE_MAX}`;
const itemsExpected = `must be a list of 1 to ${ORDER_ITEMS_MAX} items`;

const name = z
  .string(nameExpected)
  .check(
    z.minLength(1, nameExpected),
    z.maxLength(NAME_LENGTH_MAX, nameExpected),
    z.regex(/^[^\p{Cc}\p{Cs}]*$/u, nameExpected),
  );

const item = {
  sku: name,
  quantity: z.int(quantityExpected).check(z.gte(1, quantityExpected), z.lte(QUANTITY_MAX, quantityExpected)),
  unitPrice: z
    .int(unitPriceExpected)
    .check(z.gte(0, unitPriceExpected), z.lte(UNIT_PRICE_MAX, unitPriceExpected)),
};

/** One line of an order. `unitPrice` is in cents, the minor unit of the currency, so amounts are never fractions. */
export type OrderItem = z.infer<typeof orderItem>;

const orderItem = z.object(item, 'must be an object { sku, quantity, unitPrice }');

/**
 * Makes the schema of a request to place an order. Unknown members are refused, so that a misspelled one is not silently ignored.
 *
 * @param payWithinMaxSeconds - the longest time that a request may allow for the payment
 */
export function orderRequest(payWithinMaxSeconds: number) {
  const payWithinExpected = `must be a whole number of seconds from 1 to ${payWithinMaxSeconds}`;
  return z.strictObject(
    {
      customerId: name,
      items: z
        .array(z.strictObject(item, 'must be an object { sku, quantity, unitPrice }'), itemsExpected)
        .check(z.minLength(1, itemsExpected), z.maxLength(ORDER_ITEMS_MAX, itemsExpected)),
      payWithinSeconds: z.optional(
        z
          .int(payWithinExpected)
          .check(z.gte(1, payWithinExpected), z.lte(payWithinMaxSeconds, payWithinExpected)),
      ),
    },
    'must be an object { customerId, items }',
  );
}

/** The body of `POST /orders`. */
export type OrderRequest = z.infer<ReturnType<typeof orderRequest>>;

const cents = z.int().check(z.gte(0));
const orderId = z.uuid();
/** True if the payment ended because the order was not paid in time. */
const expired = z.optional(z.boolean());

/** From orders: an order was placed; payments charges it, and inventory reserves its items. */
export const OrderPlaced = defineEvent({
  source: 'orders',
  type: 'OrderPlaced',
  version: 1,
  aggregateType: 'Order',
  schema: z.object({
    orderId,
    customerId: name,
    items: z.array(orderItem).check(z.minLength(1), z.maxLength(ORDER_ITEMS_MAX)),
    totalCents: cents,
  }),
});

/** From orders, scheduled when an order is placed: its time to pay is over. Payments decides whether the order was paid in time. */
export const OrderExpired = defineEvent({
  source: 'orders',
  type: 'OrderExpired',
  version: 1,
  aggregateType: 'Order',
  schema: z.object({ orderId }),
});

/** From payments: the bank has charged the customer. */
export const PaymentCaptured = defineEvent({
  source: 'payments',
  type: 'PaymentCaptured',
  version: 1,
  aggregateType: 'Payment',
  sequence: true,
  schema: z.object({ orderId, customerId: name, amountCents: cents, chargeId: z.string() }),
});

/** From payments: the bank has refused to charge the customer. The refusal is final. */
export const PaymentDeclined = defineEvent({
  source: 'payments',
  type: 'PaymentDeclined',
  version: 1,
  aggregateType: 'Payment',
  sequence: true,
  schema: z.object({ orderId, customerId: name, amountCents: cents, reason: z.string() }),
});

/** From payments: the customer was refunded, because the order could not be completed. */
export const PaymentRefunded = defineEvent({
  source: 'payments',
  type: 'PaymentRefunded',
  version: 1,
  aggregateType: 'Payment',
  sequence: true,
  schema: z.object({
    orderId,
    customerId: name,
    amountCents: cents,
    chargeId: z.string(),
    refundId: z.string(),
    expired,
  }),
});

/** From payments: the customer was not and will not be charged, because items are out of stock or the order has expired. */
export const PaymentCancelled = defineEvent({
  source: 'payments',
  type: 'PaymentCancelled',
  version: 1,
  aggregateType: 'Payment',
  sequence: true,
  schema: z.object({ orderId, expired }),
});

/** From payments: an operator has ended the payment, which cannot succeed. A charge is refunded: `PaymentRefunded` follows. */
export const PaymentRejected = defineEvent({
  source: 'payments',
  type: 'PaymentRejected',
  version: 1,
  aggregateType: 'Payment',
  sequence: true,
  schema: z.object({
    orderId,
    customerId: name,
    amountCents: cents,
    chargeId: z.optional(z.string()),
    reason: z.string(),
  }),
});

/** From payments: the ends of a payment after which no money is kept. */
export const UNPAID = [PaymentDeclined, PaymentCancelled, PaymentRefunded, PaymentRejected] as const;

/** From inventory: every item of the order is reserved. */
export const StockReserved = defineEvent({
  source: 'inventory',
  type: 'StockReserved',
  version: 1,
  aggregateType: 'Reservation',
  sequence: true,
  schema: z.object({ orderId }),
});

/** From inventory: some items have insufficient stock, so nothing is reserved. */
export const StockRejected = defineEvent({
  source: 'inventory',
  type: 'StockRejected',
  version: 1,
  aggregateType: 'Reservation',
  sequence: true,
  schema: z.object({ orderId, missingSkus: z.array(name).check(z.minLength(1)) }),
});

/** From inventory: nothing is reserved for the order any longer, because it is not paid. */
export const StockReleased = defineEvent({
  source: 'inventory',
  type: 'StockReleased',
  version: 1,
  aggregateType: 'Reservation',
  sequence: true,
  schema: z.object({ orderId }),
});

/** From orders: the order ended without a sale; no money is kept and no stock is reserved for it. */
export const OrderCancelled = defineEvent({
  source: 'orders',
  type: 'OrderCancelled',
  version: 1,
  aggregateType: 'Order',
  schema: z.object({
    orderId,
    customerId: name,
    reason: z.enum(['out-of-stock', 'payment-declined', 'payment-failed', 'not-paid-in-time']),
    refundedCents: cents,
  }),
});

/** From orders: the events that the bridge forwards. */
export const BRIDGED = [OrderPlaced, OrderCancelled] as const;
