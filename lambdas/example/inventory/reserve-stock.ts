import { type Handler, type Table, transactional } from '../../runtime/index.ts';
import { OrderPlaced, StockRejected, StockReserved } from '../events.ts';
import { putReservation, reservationKey } from './reservation.ts';
import { availableIn, quantityBySku, stockKey, takeStock } from './stock.ts';

/**
 * Reserves the items of each placed order: all of them or none, and none if its payment was already declined.
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

    if (missingSkus.length > 0) {
      return {
        writes: [putReservation(orderId, { status: 'rejected', missingSkus })],
        events: [StockRejected.create({ aggregateId: orderId, data: { orderId, missingSkus } })],
      };
    }
    return {
      writes: [
        ...quantities.map(([sku, quantity]) => takeStock(sku, quantity)),
        putReservation(orderId, {
          status: 'reserved',
          items: quantities.map(([sku, quantity]) => ({ sku, quantity })),
        }),
      ],
      events: [StockReserved.create({ aggregateId: orderId, data: { orderId } })],
    };
  });
}
