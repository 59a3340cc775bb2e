import { CONSUMERS_OF, type Readings } from '../../demo/readings.ts';
import { STOCK_PER_SKU } from '../../demo/shop.ts';
import type { Counts } from './scenario.ts';

/** The events that every order must come to. */
const EVENTS_OF_AN_ORDER = ['OrderPlaced', 'PaymentCaptured', 'StockReserved'];

/**
 * Holds what the tables say against what must have become of the orders.
 *
 * An order is lost unless it is in the table and its three events are written and PUBLISHED, each consumer that must
 * see one has PROCESSED it, the bank has charged, an e-mail has gone out, and both decisions have come back to it.
 *
 * @param placed - how many orders the API has accepted
 * @param setAside - orders that wait for an operator, and are expected to: they are not lost
 */
export function countOrders(
  readings: Readings,
  placed: number,
  setAside: ReadonlySet<string> = new Set(),
): Counts {
  const unfinished = readings.orders.filter(
    (order) => !setAside.has(order.orderId) && !isWhole(readings, order),
  );
  return { lost: placed - readings.orders.length + unfinished.length, doubled: countDoubled(readings) };
}

function isWhole({ events, inbox, charges, emails }: Readings, order: Readings['orders'][number]): boolean {
  const own = events.filter(({ envelope }) => orderOf(envelope) === order.orderId);
  const types = own.map(({ envelope }) => envelope.type);
  return (
    order.payment !== 'pending' &&
    order.stock !== 'pending' &&
    EVENTS_OF_AN_ORDER.every((type) => types.includes(type)) &&
    own.every(({ row }) => row.status === 'PUBLISHED') &&
    own.every(({ envelope }) =>
      (CONSUMERS_OF[envelope.type] ?? []).every(
        (consumer) => inbox[consumer].get(envelope.eventId)?.status === 'PROCESSED',
      ),
    ) &&
    charges.has(order.orderId) &&
    emails.has(order.orderId)
  );
}

function countDoubled({ events, charges, emails, stock }: Readings): number {
  const written = events.map(({ envelope }) => `${envelope.type} ${orderOf(envelope)}`);
  const taken = [...stock.values()].reduce((sum, left) => sum + STOCK_PER_SKU - left, 0);
  const reserved = events
    .filter(({ envelope }) => envelope.type === 'OrderPlaced')
    .flatMap(({ envelope }) => (envelope.data as { items: readonly { quantity: number }[] }).items)
    .reduce((sum, { quantity }) => sum + quantity, 0);
  return (
    surplus([...charges.values()].map((made) => made.length)) +
    surplus([...emails.values()]) +
    (written.length - new Set(written).size) +
    Math.max(0, taken - reserved)
  );
}

function surplus(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count - 1, 0);
}

function orderOf({ data }: { readonly data: unknown }): string {
  return (data as { orderId: string }).orderId;
}
