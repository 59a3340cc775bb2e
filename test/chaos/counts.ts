import { isSoldOut } from '../../demo/planned-orders.ts';
import { CONSUMERS_OF, emailsDue, keptCents, type Readings } from '../../demo/readings.ts';
import { STOCK_PER_SKU } from '../../demo/shop.ts';
import { orderStatus } from '../../lambdas/example/orders/order.ts';
import type { Counts } from './scenario.ts';

/** The events that every order must come to: one for goods in stock, and one for goods that are sold out. */
const EVENTS_WHEN_CONFIRMED = ['OrderPlaced', 'PaymentCaptured', 'StockReserved'];
const EVENTS_WHEN_CANCELLED = ['OrderPlaced', 'StockRejected', 'OrderCancelled'];

/**
 * Holds what the tables say against what must have become of the orders.
 *
 * An order is lost unless it is in the table, confirmed or (if its goods are sold out) cancelled, its three events are
 * written and PUBLISHED, each consumer that must see one has PROCESSED it, its e-mails have gone out, and the bank has
 * kept what it comes to: its total, or nothing.
 *
 * @param placed - how many orders the API has accepted
 * @param setAside - orders that wait for an operator, and are expected to: they are not lost
 */
export function countOrders(
  readings: Readings,
  placed: number,
  setAside: ReadonlySet<string> = new Set(),
): Counts {
  const due = emailsDue(readings);
  const unfinished = readings.orders.filter(
    (order) => !setAside.has(order.orderId) && !isWhole(readings, order, due.get(order.orderId) ?? 0),
  );
  return {
    lost: placed - readings.orders.length + unfinished.length,
    duplicated: countDuplicated(readings, due),
  };
}

function isWhole(readings: Readings, order: Readings['orders'][number], emailsOfIt: number): boolean {
  const { events, inbox, emails } = readings;
  const { orderId, totalCents } = order;
  const own = events.filter(({ envelope }) => orderOf(envelope) === orderId);
  const types = own.map(({ envelope }) => envelope.type);
  const [status, expected, kept] = isSoldOut(order)
    ? ['cancelled', EVENTS_WHEN_CANCELLED, 0]
    : ['confirmed', EVENTS_WHEN_CONFIRMED, totalCents];
  return (
    orderStatus(order) === status &&
    expected.every((type) => types.includes(type)) &&
    own.every(({ row }) => row.status === 'PUBLISHED') &&
    own.every(({ envelope }) =>
      (CONSUMERS_OF[envelope.type] ?? []).every(
        (consumer) => inbox[consumer].get(envelope.eventId)?.status === 'PROCESSED',
      ),
    ) &&
    keptCents(readings, orderId) === kept &&
    (emails.get(orderId) ?? 0) >= emailsOfIt
  );
}

function countDuplicated(
  { orders, events, charges, refunds, emails, stock }: Readings,
  due: ReadonlyMap<string, number>,
): number {
  const written = events.map(({ envelope }) => `${envelope.type} ${orderOf(envelope)}`);
  const taken = [...stock.values()].reduce((sum, left) => sum + STOCK_PER_SKU - left, 0);
  const reserved = orders
    .filter((order) => !isSoldOut(order))
    .flatMap(({ items }) => items)
    .reduce((sum, { quantity }) => sum + quantity, 0);
  return (
    surplus(charges) +
    surplus(refunds) +
    [...emails].reduce((sum, [orderId, sent]) => sum + Math.max(0, sent - (due.get(orderId) ?? 0)), 0) +
    (written.length - new Set(written).size) +
    Math.max(0, taken - reserved)
  );
}

/** What the bank did of a kind beyond once for each order. */
function surplus(moves: Readings['charges']): number {
  return [...moves.values()].flat().length - moves.size;
}

function orderOf({ data }: { readonly data: unknown }): string {
  return (data as { orderId: string }).orderId;
}
