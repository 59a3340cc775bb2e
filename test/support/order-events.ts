import {
  OrderExpired,
  OrderPlaced,
  PaymentCancelled,
  PaymentCaptured,
  PaymentDeclined,
  PaymentRefunded,
  StockRejected,
} from '../../lambdas/example/events.ts';
import { newOrder } from '../../lambdas/example/orders/order.ts';

/** An order of two pieces of coffee for 9.00. */
export const order = newOrder(
  'key',
  { customerId: 'ada', items: [{ sku: 'coffee', quantity: 2, unitPrice: 450 }] },
  0,
);

const { orderId, customerId, items, totalCents } = order;
const payment = { orderId, customerId, amountCents: totalCents };

/** What the services report of {@link order}. */
export const orderPlaced = OrderPlaced.create({
  aggregateId: orderId,
  data: { orderId, customerId, items: [...items], totalCents },
});
export const orderExpired = OrderExpired.create({ aggregateId: orderId, data: { orderId } });
export const stockRejected = StockRejected.create({
  aggregateId: orderId,
  sequence: 1,
  data: { orderId, missingSkus: ['coffee'] },
});
export const paymentCaptured = PaymentCaptured.create({
  aggregateId: orderId,
  sequence: 1,
  data: { ...payment, chargeId: 'charge-1' },
});
export const paymentCancelled = PaymentCancelled.create({
  aggregateId: orderId,
  sequence: 1,
  data: { orderId, expired: true },
});
export const paymentDeclined = PaymentDeclined.create({
  aggregateId: orderId,
  sequence: 1,
  data: { ...payment, reason: 'no money' },
});
export const paymentRefunded = PaymentRefunded.create({
  aggregateId: orderId,
  sequence: 1,
  data: { ...payment, chargeId: 'charge-1', refundId: 'refund-1' },
});
