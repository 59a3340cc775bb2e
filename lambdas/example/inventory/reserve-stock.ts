import {
  type EventOf,
  type Handler,
  nextVersion,
  type Table,
  transactionalBatch,
} from '../../runtime/index.ts';
import { OrderPlaced, StockRejected, StockReserved } from '../events.ts';
import { putReservation, type Reservation, reservationKey } from './reservation.ts';
import { availableIn, quantityBySku, stockKey, takeStock } from './stock.ts';

/**
 * Reserves the items of each placed order: all of them or none, and none if its payment has already ended without money. Orders that come
 * together take from the row of a SKU in one write, in the order of their events.
 *
 * The reads decide what to try, and the conditions of the writes decide whether it succeeds: if another order took the last piece
 * in between, the whole transaction is refused, and the handler runs again on fresh reads.
 */
export function reserveStock({ table }: { readonly table: Table }): Handler {
  return transactionalBatch(OrderPlaced, async (orders) => {
    const skus = [...new Set(orders.flatMap(({ data }) => data.items.map(({ sku }) => sku)))];
    const [decided, stock] = await Promise.all([
      Promise.all(orders.map(({ data }) => table.get(reservationKey(data.orderId), { consistent: true }))),
      Promise.all(skus.map((sku) => table.get(stockKey(sku), { consistent: true }))),
    ]);
    const left = new Map(skus.map((sku, i) => [sku, availableIn(stock[i])]));
    const taken = new Map<string, number>();
    const decisions = orders.flatMap((cause, i) => {
      const row = decided[i];
      if (row?.status === 'released') return [];
      const reservation = reserve(cause, left, taken);
      const { orderId } = cause.data;
      const { write, version } = nextVersion(putReservation(orderId, reservation), { row });
      return [{ write, caused: { cause, draft: announcement(orderId, version, reservation) } }];
    });
    return {
      writes: [
        ...[...taken].map(([sku, quantity]) => takeStock(sku, quantity)),
        ...decisions.map(({ write }) => write),
      ],
      events: decisions.map(({ caused }) => caused),
    };
  });
}

type DecidedReservation = Exclude<Reservation, { readonly status: 'released' }>;

/** Decides about one order, and moves what it gets from `left` to `taken`. */
function reserve(
  { data: { items } }: EventOf<typeof OrderPlaced>,
  left: Map<string, number>,
  taken: Map<string, number>,
): DecidedReservation {
  const wanted = [...quantityBySku(items)].map(([sku, quantity]) => ({ sku, quantity }));
  const missing = wanted.filter(({ sku, quantity }) => (left.get(sku) ?? 0) < quantity);
  if (missing.length > 0) return { status: 'rejected', missingSkus: missing.map(({ sku }) => sku) };
  for (const { sku, quantity } of wanted) {
    left.set(sku, (left.get(sku) ?? 0) - quantity);
    taken.set(sku, (taken.get(sku) ?? 0) + quantity);
  }
  return { status: 'reserved', items: wanted };
}

function announcement(orderId: string, sequence: number, reservation: DecidedReservation) {
  const about = { aggregateId: orderId, sequence };
  return reservation.status === 'reserved'
    ? StockReserved.create({ ...about, data: { orderId } })
    : StockRejected.create({ ...about, data: { orderId, missingSkus: [...reservation.missingSkus] } });
}
