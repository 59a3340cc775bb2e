import {
  type Clock,
  type Commit,
  type EventDraft,
  type Handler,
  latest,
  type Outbox,
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
import { type Order, type OrderHalves, orderKey, orderOfRow, orderStatus } from './order.ts';

/** Dependencies of {@link orderStatusHandlers}. */
interface OrderStatusDeps {
  readonly table: Table;
  readonly outbox: Pick<Outbox, 'cancellation'>;
  readonly clock: Clock;
}

/** Only the latest report of each aggregate, the payment and the reservation, is applied: its owner numbers its events. */
const STATE = { order: latest({ group: 'state' }) };

/**
 * Updates an order as payments and inventory report, in any order of their events, and announces its cancellation once: in the
 * commit of the event that completes it. The inbox ensures that each event is applied once, and the order of the handlers, that a
 * `PaymentCaptured` that arrives after its `PaymentRefunded` is not. The first report of payments cancels the expiry of the order.
 */
export function orderStatusHandlers(deps: OrderStatusDeps): readonly Handler[] {
  const report = (orderId: string, halves: Partial<OrderHalves>) => moveOn(deps, orderId, halves);
  return [
    transactional(PaymentCaptured, async ({ data }) => report(data.orderId, { payment: 'captured' }), STATE),
    transactional(PaymentDeclined, async ({ data }) => report(data.orderId, { payment: 'declined' }), STATE),
    transactional(
      PaymentRefunded,
      async ({ data: { orderId, expired } }) => report(orderId, { payment: 'refunded', expired }),
      STATE,
    ),
    transactional(
      PaymentCancelled,
      async ({ data: { orderId, expired } }) => report(orderId, { payment: 'cancelled', expired }),
      STATE,
    ),
    // A charge is refunded first.
    transactional(
      PaymentRejected,
      async ({ data }) => (data.chargeId === undefined ? report(data.orderId, { payment: 'rejected' }) : {}),
      STATE,
    ),
    transactional(StockReserved, async ({ data }) => report(data.orderId, { stock: 'reserved' }), STATE),
    transactional(StockRejected, async ({ data }) => report(data.orderId, { stock: 'rejected' }), STATE),
    transactional(StockReleased, async ({ data }) => report(data.orderId, { stock: 'released' }), STATE),
  ];
}

async function moveOn(
  { table, outbox, clock }: OrderStatusDeps,
  orderId: string,
  report: Partial<OrderHalves>,
): Promise<Commit> {
  const row = await table.get(orderKey(orderId), { consistent: true });
  if (row === undefined) throw new Error(`Order ${orderId} does not exist; only the API places orders`);
  const before = orderOfRow(row);
  const after = { ...before, ...report };
  const { payBy, expiryId } = before;
  // Payments has decided. An expiry that is due may be published: its cancellation would refuse the commit, and payments ignores it.
  const isOver = before.payment === 'pending' && after.payment !== 'pending';
  const cancels = isOver && expiryId !== undefined && clock.now() < (payBy ?? 0);
  return {
    writes: [
      ...(cancels ? [outbox.cancellation(expiryId)] : []),
      {
        Update: {
          Key: { ...orderKey(orderId) },
          UpdateExpression: 'SET payment = :payment, stock = :stock, expired = :expired',
          // Of two concurrent reports, the second must not act on an outdated other half: its condition fails and it runs again.
          ConditionExpression: 'payment = :paymentBefore AND stock = :stockBefore',
          ExpressionAttributeValues: {
            ':payment': after.payment,
            ':stock': after.stock,
            ':expired': after.expired ?? false,
            ':paymentBefore': before.payment,
            ':stockBefore': before.stock,
          },
        },
      },
    ],
    events: orderStatus(after) === 'cancelled' ? [cancelled(after)] : [],
  };
}

function cancelled({ orderId, customerId, totalCents, payment, stock, expired }: Order): EventDraft {
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
            : expired
              ? 'not-paid-in-time'
              : 'payment-failed',
      refundedCents: payment === 'refunded' ? totalCents : 0,
    },
  });
}
