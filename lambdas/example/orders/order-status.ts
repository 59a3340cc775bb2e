import type { StandardSchemaV1 } from '@standard-schema/spec';
import {
  type Clock,
  type Commit,
  type EventDefinition,
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
  return REPORTS.map(({ definition, halves }) =>
    transactional(
      definition,
      async ({ data }) => {
        const reports = halves(data);
        return reports === undefined ? {} : moveOn(deps, data.orderId, reports);
      },
      STATE,
    ),
  );
}

/** An event that reports on an order. */
interface OrderReport {
  readonly definition: EventDefinition<string, ReportSchema>;
  /** The reported halves; `undefined` if it reports nothing. */
  readonly halves: (data: unknown) => Partial<OrderHalves> | undefined;
}

type ReportSchema = StandardSchemaV1<unknown, { readonly orderId: string }>;

/** The reports of payments and inventory. */
export const REPORTS: readonly OrderReport[] = [
  report(PaymentCaptured, () => ({ payment: 'captured' })),
  report(PaymentDeclined, () => ({ payment: 'declined' })),
  report(PaymentRefunded, ({ expired }) => ({ payment: 'refunded', expired })),
  report(PaymentCancelled, ({ expired }) => ({ payment: 'cancelled', expired })),
  // A charge is refunded first.
  report(PaymentRejected, ({ chargeId }) => (chargeId === undefined ? { payment: 'rejected' } : undefined)),
  report(StockReserved, () => ({ stock: 'reserved' })),
  report(StockRejected, () => ({ stock: 'rejected' })),
  report(StockReleased, () => ({ stock: 'released' })),
];

async function moveOn(
  { table, outbox, clock }: OrderStatusDeps,
  orderId: string,
  report: Partial<OrderHalves>,
): Promise<Commit> {
  const row = await table.get(orderKey(orderId), { consistent: true });
  if (row === undefined) throw new Error(`Order ${orderId} does not exist; only the API places orders`);
  const before = orderOfRow(row);
  const { after, endsExpiry, events } = reported(before, report);
  const { payBy, expiryId } = before;
  // An expiry that is due may be published: its cancellation would refuse the commit, and payments ignores it.
  const cancels = endsExpiry && expiryId !== undefined && clock.now() < (payBy ?? 0);
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
    events,
  };
}

/**
 * Applies a report to an order.
 *
 * @returns the order, whether its payment is decided now, so that it no longer expires, and the event of its cancellation if this
 * report completes it
 */
export function reported(before: Order, report: Partial<OrderHalves>) {
  const after = { ...before, ...report };
  return {
    after,
    endsExpiry: before.payment === 'pending' && after.payment !== 'pending',
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

function report<S extends ReportSchema>(
  definition: EventDefinition<string, S>,
  halvesOf: (data: StandardSchemaV1.InferOutput<S>) => Partial<OrderHalves> | undefined,
): OrderReport {
  return { definition, halves: (data) => halvesOf(data as StandardSchemaV1.InferOutput<S>) };
}
