import {
  type Commit,
  type EventDraft,
  type Handler,
  type Table,
  transactional,
} from '../../runtime/index.ts';
import {
  OrderCancelled,
  PaymentCancelled,
  PaymentCaptured,
  PaymentDeclined,
  PaymentRefunded,
  StockRejected,
  StockReleased,
  StockReserved,
} from '../events.ts';
import { movedOn, type Order, type OrderHalves, orderKey, orderOfRow, orderStatus } from './order.ts';

/**
 * Moves an order on as payments and inventory report, in whatever order their events come, and announces once that it
 * is cancelled: by the event that makes it so. That each event is applied once is the inbox's work.
 */
export function orderStatusHandlers({ table }: { readonly table: Table }): readonly Handler[] {
  const report = (orderId: string, halves: Partial<OrderHalves>) => moveOn(table, orderId, halves);
  return [
    transactional(PaymentCaptured, async ({ data }) => report(data.orderId, { payment: 'captured' })),
    transactional(PaymentDeclined, async ({ data }) => report(data.orderId, { payment: 'declined' })),
    transactional(PaymentRefunded, async ({ data }) => report(data.orderId, { payment: 'refunded' })),
    transactional(PaymentCancelled, async ({ data }) => report(data.orderId, { payment: 'cancelled' })),
    transactional(StockReserved, async ({ data }) => report(data.orderId, { stock: 'reserved' })),
    transactional(StockRejected, async ({ data }) => report(data.orderId, { stock: 'rejected' })),
    transactional(StockReleased, async ({ data }) => report(data.orderId, { stock: 'released' })),
  ];
}

async function moveOn(table: Table, orderId: string, report: Partial<OrderHalves>): Promise<Commit> {
  const row = await table.get(orderKey(orderId), { consistent: true });
  if (row === undefined) throw new Error(`There is no order ${orderId}; only the API places one`);
  const before = orderOfRow(row);
  const after = { ...before, ...movedOn(before, report) };
  if (after.payment === before.payment && after.stock === before.stock) return {};
  return {
    writes: [
      {
        Update: {
          Key: { ...orderKey(orderId) },
          UpdateExpression: 'SET payment = :payment, stock = :stock',
          // Two reports at once must not both take the other half for what it was: the second is run again.
          ConditionExpression: 'payment = :paymentBefore AND stock = :stockBefore',
          ExpressionAttributeValues: {
            ':payment': after.payment,
            ':stock': after.stock,
            ':paymentBefore': before.payment,
            ':stockBefore': before.stock,
          },
        },
      },
    ],
    events: orderStatus(after) === 'cancelled' ? [cancelled(after)] : [],
  };
}

function cancelled({ orderId, customerId, totalCents, payment, stock }: Order): EventDraft {
  return OrderCancelled.create({
    aggregateId: orderId,
    data: {
      orderId,
      customerId,
      reason: stock === 'rejected' ? 'out-of-stock' : 'payment-declined',
      refundedCents: payment === 'refunded' ? totalCents : 0,
    },
  });
}
