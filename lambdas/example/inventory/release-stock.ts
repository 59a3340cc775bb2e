import { type Commit, type Handler, type Table, transactional } from '../../runtime/index.ts';
import { PaymentDeclined, type PaymentRejected, StockReleased } from '../events.ts';
import { putReservation, reservationKey, reservationOfRow } from './reservation.ts';
import { returnStock } from './stock.ts';

/**
 * Compensates for the reservation of an order that is not paid, because the bank declined it or an operator ended its payment: its items return to stock. If the order is not reserved
 * yet, its row records the release, and then nothing is reserved for it.
 *
 * The condition on the row decides which of the two messages is first; the handler of the other one runs again and reads the row.
 */
export function releaseStock(
  { table }: { readonly table: Table },
  unpaid: typeof PaymentDeclined | typeof PaymentRejected = PaymentDeclined,
): Handler {
  return transactional(unpaid, ({ data }) => released(table, data.orderId));
}

async function released(table: Table, orderId: string): Promise<Commit> {
  const row = await table.get(reservationKey(orderId), { consistent: true });
  const reservation = reservationOfRow(row);
  const events = [StockReleased.create({ aggregateId: orderId, data: { orderId } })];
  const release = { status: 'released' } as const;
  switch (reservation?.status) {
    case undefined:
      return { writes: [putReservation(orderId, release)], events };
    case 'reserved':
      return {
        writes: [
          ...reservation.items.map(({ sku, quantity }) => returnStock(sku, quantity)),
          putReservation(orderId, release, 'reserved'),
        ],
        events,
      };
    default: // rejected: nothing was reserved
      return {};
  }
}
