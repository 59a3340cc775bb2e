import { type Handler, nextVersion, type Table, transactional } from '../../runtime/index.ts';
import { OrderPlaced, StockRejected, StockReserved } from '../events.ts';
import { putReservation, type Reservation, reservationKey } from './reservation.ts';
import { availableIn, quantityBySku, stockKey, takeStock } from './stock.ts';

/**
 * Reserves the items of each placed order: all of them or none, and none if its payment has already ended without money.
 *
 * The reads decide what to try, and the conditions of the writes decide whether it succeeds: if another order took the last piece
 * in between, the whole transaction is refused, and the handler runs again on fresh reads.
 */
export function reserveStock(deps: { readonly table: Table }): Handler {
  return transactional(OrderPlaced, async ({ data: { orderId, items } }) => {
    const quantities = [...quantityBySku(items)];
    const [decided, ...rows] = await Promise.all(
      [reservationKey(orderId), ...quantities.map(([sku]) => stockKey(sku))].map((key) =>
        deps.table.get(key, { consistent: true }),
      ),
    );
    if (decided?.status === 'released') return {};
    const missingSkus = quantities
      .filter(([, quantity], i) => availableIn(rows[i]) < quantity)
      .map(([sku]) => sku);

    const decide = (reservation: Reservation) =>
      nextVersion(putReservation(orderId, reservation), { row: decided });

    if (missingSkus.length > 0) {
      const { write, version: sequence } = decide({ status: 'rejected', missingSkus });
      return {
        writes: [write],
        events: [StockRejected.create({ aggregateId: orderId, sequence, data: { orderId, missingSkus } })],
      };
    }
    const taken = quantities.map(([sku, quantity]) => ({ sku, quantity }));
    const { write, version: sequence } = decide({ status: 'reserved', items: taken });
    return {
      writes: [...quantities.map(([sku, quantity]) => takeStock(sku, quantity)), write],
      events: [StockReserved.create({ aggregateId: orderId, sequence, data: { orderId } })],
    };
  });
}
