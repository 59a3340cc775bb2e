import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { LARGE } from '../../../bench/cost/tables.ts';
import {
  ORDER_ITEMS_MAX,
  OrderCancelled,
  OrderPlaced,
  PaymentCancelled,
  PaymentCaptured,
  PaymentDeclined,
  PaymentRefunded,
  QUANTITY_MAX,
  StockRejected,
  StockReleased,
  StockReserved,
  UNIT_PRICE_MAX,
} from '../../../lambdas/example/events.ts';
import { orderIdOf } from '../../../lambdas/example/orders/order.ts';

const orderId = orderIdOf('key');
const payment = { orderId, customerId: 'alice', amountCents: 2_500 };

describe('the catalog', () => {
  it.each([
    [
      OrderPlaced,
      { orderId, customerId: 'alice', items: [{ sku: 'a', quantity: 1, unitPrice: 0 }], totalCents: 0 },
    ],
    [PaymentCaptured, { ...payment, chargeId: 'c-1' }],
    [PaymentDeclined, { ...payment, reason: 'no money' }],
    [PaymentRefunded, { ...payment, chargeId: 'c-1', refundId: 'r-1' }],
    [PaymentCancelled, { orderId }],
    [StockReserved, { orderId }],
    [StockRejected, { orderId, missingSkus: ['a'] }],
    [StockReleased, { orderId }],
    [OrderCancelled, { orderId, customerId: 'alice', reason: 'out-of-stock', refundedCents: 0 }],
  ])("accepts its services' events, whatever else they carry", (definition, data) => {
    expect(definition.schema.safeParse(data)).toMatchObject({ success: true });
    expect(definition.schema.safeParse({ ...data, later: true })).toMatchObject({ success: true });
    expect(definition.schema.safeParse({ ...data, orderId: 'no uuid' })).toMatchObject({ success: false });
  });

  it('keeps the largest total a safe integer', () => {
    expect(Number.isSafeInteger(ORDER_ITEMS_MAX * QUANTITY_MAX * UNIT_PRICE_MAX)).toBe(true);
  });
});

it('the largest event of the order system is cheaper in its row than in S3, as docs/payloads.md says', () => {
  const longest = '\u6f22'.repeat(100);
  const line = { sku: longest, quantity: QUANTITY_MAX, unitPrice: UNIT_PRICE_MAX };
  const order = {
    orderId,
    customerId: longest,
    items: Array.from({ length: ORDER_ITEMS_MAX }, () => line),
    totalCents: Number.MAX_SAFE_INTEGER,
  };
  expect(OrderPlaced.schema.safeParse(order)).toMatchObject({ success: true });
  expect(OrderPlaced.schema.safeParse({ ...order, customerId: `${longest}a` }).success).toBe(false);
  const bytes = Buffer.byteLength(JSON.stringify(order));
  expect(bytes).toBeLessThan(LARGE[1]);
  const page = readFileSync('docs/payloads.md', 'utf8').replaceAll(/\s+/g, ' ');
  expect(page).toContain(`an order of ${ORDER_ITEMS_MAX} lines, has at most ${Math.ceil(bytes / 1_024)} KB`);
});
