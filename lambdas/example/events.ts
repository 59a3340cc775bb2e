import * as z from 'zod/mini';
import { defineEvent } from '../runtime/index.ts';

/** The most items of one order: with its other writes it must fit one transaction of 100 actions. */
export const ORDER_ITEMS_MAX = 50;

/** The longest `customerId` and `sku`, characters. */
const NAME_LENGTH_MAX = 100;

/** The most of one item in an order. */
export const QUANTITY_MAX = 10_000;

/** The highest price of one piece, cents. With the limits above, a total stays a safe integer. */
export const UNIT_PRICE_MAX = 100_000_000;

const nameExpected = `must be a text of 1 to ${NAME_LENGTH_MAX} characters, without control characters`;
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

/** One line of an order. `unitPrice` is in cents, the minor unit of the currency: money is never a fraction. */
export type OrderItem = z.infer<typeof orderItem>;

const orderItem = z.object(item, 'must be an object { sku, quantity, unitPrice }');

/**
 * What a customer sends to place an order. A member that it does not know is refused, so that a misspelt one
 * is not silently lost.
 */
export const orderRequest = z.strictObject(
  {
    customerId: name,
    items: z
      .array(z.strictObject(item, 'must be an object { sku, quantity, unitPrice }'), itemsExpected)
      .check(z.minLength(1, itemsExpected), z.maxLength(ORDER_ITEMS_MAX, itemsExpected)),
  },
  'must be an object { customerId, items }',
);

/** The body of `POST /orders`. */
export type OrderRequest = z.infer<typeof orderRequest>;

const cents = z.int().check(z.gte(0));
const orderId = z.uuid();

/** By orders: the order exists and asks to be paid and reserved. */
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

/** By payments: the bank has charged the customer. */
export const PaymentCaptured = defineEvent({
  source: 'payments',
  type: 'PaymentCaptured',
  version: 1,
  aggregateType: 'Payment',
  schema: z.object({ orderId, customerId: name, amountCents: cents, chargeId: z.string() }),
});

/** By payments: the bank has refused to charge the customer, and will not change its mind. */
export const PaymentDeclined = defineEvent({
  source: 'payments',
  type: 'PaymentDeclined',
  version: 1,
  aggregateType: 'Payment',
  schema: z.object({ orderId, customerId: name, amountCents: cents, reason: z.string() }),
});

/** By payments: the customer has their money back, because inventory could not set the order's items aside. */
export const PaymentRefunded = defineEvent({
  source: 'payments',
  type: 'PaymentRefunded',
  version: 1,
  aggregateType: 'Payment',
  schema: z.object({
    orderId,
    customerId: name,
    amountCents: cents,
    chargeId: z.string(),
    refundId: z.string(),
  }),
});

/** By payments: the customer was not charged and will not be, because inventory could not set the order's items aside. */
export const PaymentCancelled = defineEvent({
  source: 'payments',
  type: 'PaymentCancelled',
  version: 1,
  aggregateType: 'Payment',
  schema: z.object({ orderId }),
});

/** By inventory: every item of the order is set aside. */
export const StockReserved = defineEvent({
  source: 'inventory',
  type: 'StockReserved',
  version: 1,
  aggregateType: 'Reservation',
  schema: z.object({ orderId }),
});

/** By inventory: there is too little of some items, so nothing is set aside. */
export const StockRejected = defineEvent({
  source: 'inventory',
  type: 'StockRejected',
  version: 1,
  aggregateType: 'Reservation',
  schema: z.object({ orderId, missingSkus: z.array(name).check(z.minLength(1)) }),
});

/** By inventory: nothing is set aside for the order any more, because its payment was declined. */
export const StockReleased = defineEvent({
  source: 'inventory',
  type: 'StockReleased',
  version: 1,
  aggregateType: 'Reservation',
  schema: z.object({ orderId }),
});

/** By orders: the order has ended without a sale; no money is kept and no stock is held for it. */
export const OrderCancelled = defineEvent({
  source: 'orders',
  type: 'OrderCancelled',
  version: 1,
  aggregateType: 'Order',
  schema: z.object({
    orderId,
    customerId: name,
    reason: z.enum(['out-of-stock', 'payment-declined']),
    refundedCents: cents,
  }),
});
