import { type Handler, type Table, transactional } from '../../runtime/index.ts';
import { OrderPlaced, StockRejected, StockReserved } from '../events.ts';
import { putReservation, reservationKey } from './reservation.ts';
import { availableIn, quantityBySku, stockKey, takeStock } from './stock.ts';

/**
 * Sets the items of each placed order aside, all of them or none; none when its payment was declined before.
 *
 * The reads decide what to try, the conditions of the writes decide whether it holds: if somebody else took the
 * last piece in between, the whole transaction is refused, the handler runs again and reads what is there now.
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
