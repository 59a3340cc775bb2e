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
  PaymentRejected,
  StockRejected,
  StockReleased,
  StockReserved,
} from '../events.ts';
import { movedOn, type Order, type OrderHalves, orderKey, orderOfRow, orderStatus } from './order.ts';

/**
 * Updates an order as payments and inventory report, in any order of their events, and announces its cancellation once: in the
 * commit of the event that completes it. The inbox ensures that each event is applied once.
 */
export function orderStatusHandlers({ table }: { readonly table: Table }): readonly Handler[] {
  const report = (orderId: string, halves: Partial<OrderHalves>) => moveOn(table, orderId, halves);
  return [
    transactional(PaymentCaptured, async ({ data }) => report(data.orderId, { payment: 'captured' })),
    transactional(PaymentDeclined, async ({ data }) => report(data.orderId, { payment: 'declined' })),
    transactional(PaymentRefunded, async ({ data }) => report(data.orderId, { payment: 'refunded' })),
    transactional(PaymentCancelled, async ({ data }) => report(data.orderId, { payment: 'cancelled' })),
    // A charge is refunded first.
    transactional(PaymentRejected, async ({ data }) =>
      data.chargeId === undefined ? report(data.orderId, { payment: 'rejected' }) : {},
    ),
    transactional(StockReserved, async ({ data }) => report(data.orderId, { stock: 'reserved' })),
    transactional(StockRejected, async ({ data }) => report(data.orderId, { stock: 'rejected' })),
    transactional(StockReleased, async ({ data }) => report(data.orderId, { stock: 'released' })),
  ];
}

async function moveOn(table: Table, orderId: string, report: Partial<OrderHalves>): Promise<Commit> {
  const row = await table.get(orderKey(orderId), { consistent: true });
  if (row === undefined) throw new Error(`Order ${orderId} does not exist; only the API places orders`);
  const before = orderOfRow(row);
  const after = { ...before, ...movedOn(before, report) };
  if (after.payment === before.payment && after.stock === before.stock) return {};
  return {
    writes: [
      {
        Update: {
          Key: { ...orderKey(orderId) },
          UpdateExpression: 'SET payment = :payment, stock = :stock',
          // Of two concurrent reports, the second must not act on an outdated other half: its condition fails and it runs again.
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
      reason:
        stock === 'rejected'
          ? 'out-of-stock'
          : payment === 'declined'
            ? 'payment-declined'
            : 'payment-failed',
      refundedCents: payment === 'refunded' ? totalCents : 0,
    },
  });
}
