import { type Handler, type Table, transactional } from '../../runtime/index.ts';
import { PaymentDeclined, StockReleased } from '../events.ts';
import { putReservation, reservationKey, reservationOfRow } from './reservation.ts';
import { returnStock } from './stock.ts';

/**
 * Compensates for the reservation of an order whose payment was declined: its items return to stock. If the order is not reserved
 * yet, its row records the release, and then nothing is reserved for it.
 *
 * The condition on the row decides which of the two messages is first; the handler of the other one runs again and reads the row.
 */
export function releaseStock(deps: { readonly table: Table }): Handler {
  return transactional(PaymentDeclined, async ({ data: { orderId } }) => {
    const row = await deps.table.get(reservationKey(orderId), { consistent: true });
    const reservation = reservationOfRow(row);
    const events = [StockReleased.create({ aggregateId: orderId, data: { orderId } })];
    const released = { status: 'released' } as const;
    switch (reservation?.status) {
      case undefined:
        return { writes: [putReservation(orderId, released)], events };
      case 'reserved':
        return {
          writes: [
            ...reservation.items.map(({ sku, quantity }) => returnStock(sku, quantity)),
            putReservation(orderId, released, 'reserved'),
          ],
          events,
        };
      default: // rejected: nothing was reserved
        return {};
    }
  });
}
