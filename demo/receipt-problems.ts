import { orderStatus } from '../lambdas/example/orders/order.ts';
import type { InboxRow } from '../lambdas/runtime/store/rows.ts';
import { isLate, isSoldOut, isUnchargeable } from './planned-orders.ts';
import { CONSUMERS_OF, emailsDue, keptCents, type Readings } from './readings.ts';
import type { Receipt, Sent } from './receipt.ts';
import { STOCK_PER_SKU } from './shop.ts';

/** Compares the end state with the orders that were planned, and with what was sent. @returns one text per problem */
export function problemsOf(
  readings: Readings,
  sent: Sent,
  counts: Omit<Receipt, 'problems' | `commit${string}`>,
): string[] {
  const { orders, events, inbox, stock, emails, refunds } = readings;
  const { outdated = [] } = sent;
  const late = orders.filter(isLate);
  const unprocessed = events.flatMap(({ envelope }) =>
    (CONSUMERS_OF[envelope.type] ?? []).filter((consumer) => !isDone(inbox[consumer].get(envelope.eventId))),
  );
  const [unsold, sold] = [orders.filter((order) => !isSold(order)), orders.filter(isSold)];
  const statusIs = (wanted: string) => (order: Readings['orders'][number]) => orderStatus(order) === wanted;
  const ordered = sold.flatMap(({ items }) => items).reduce((sum, { quantity }) => sum + quantity, 0);
  const taken = [...stock.values()].reduce((sum, available) => sum + STOCK_PER_SKU - available, 0);
  const surplus = [...emailsDue(readings)].map(([orderId, due]) => (emails.get(orderId) ?? 0) - due);
  const outdatedApplied = outdated.filter((eventId) => !isSuperseded(inbox['order-status'].get(eventId)));
  const keptOf = ({ orderId }: { readonly orderId: string }) => keptCents(readings, orderId);
  const checks: [number, string][] = [
    [sent.orders - counts.orders, 'orders are missing from the table'],
    [events.length - counts.eventsPublished, 'events are not published'],
    [unprocessed.length, 'messages are not processed'],
    [sold.length - sold.filter(statusIs('confirmed')).length, 'orders are not confirmed'],
    [unsold.length - unsold.filter(statusIs('cancelled')).length, 'orders are not cancelled'],
    [counts.orders - counts.scheduled, 'orders have no scheduled expiry'],
    [counts.orders - late.length - counts.timersCancelled, 'expiries of orders were not cancelled'],
    [
      orders.filter((order) => hasExpired(order) && !isLate(order)).length,
      'orders have expired that could be paid',
    ],
    [late.filter((order) => !hasExpired(order)).length, 'orders that were not paid in time have not expired'],
    [outdatedApplied.length, 'outdated reports were not superseded'],
    [late.length > 0 && outdated.length === 0 ? 1 : 0, 'outdated reports were not published'],
    [counts.missingCharges, 'orders are not charged'],
    [counts.doubleCharges, 'charges are duplicates'],
    [counts.refunds - refunds.size, 'refunds are duplicates'],
    [unsold.filter((order) => keptOf(order) !== 0).length, 'cancelled orders are not refunded'],
    [sold.filter(({ orderId }) => refunds.has(orderId)).length, 'confirmed orders are refunded'],
    [counts.duplicatesSent - counts.duplicatesAbsorbed, 'duplicates were not absorbed'],
    [surplus.filter((more) => more < 0).length, 'orders have too few e-mails'],
    [surplus.filter((more) => more > 0).length, 'orders have too many e-mails'],
    [taken - ordered, 'more units of stock were reserved than ordered'],
    [readings.deadLetters, 'messages are in a dead-letter queue'],
    [readings.queued, 'messages are still in a queue'],
  ];
  return checks.filter(([count]) => count !== 0).map(([count, what]) => `${count} ${what}`);
}

/** Returns true for an order that must end confirmed. */
export function isSold(order: Readings['orders'][number]): boolean {
  return !isSoldOut(order) && !isUnchargeable(order) && !isLate(order);
}

/** Returns true for an order that was cancelled because it was not paid in time. */
export function hasExpired(order: Readings['orders'][number]): boolean {
  return order.expired === true && orderStatus(order) === 'cancelled';
}

export function isSuperseded(row: InboxRow | undefined): boolean {
  return row?.status === 'PROCESSED' && row.supersededBy !== undefined;
}

/** Returns true for a message that nothing more is expected of. */
export function isDone(row: InboxRow | undefined): boolean {
  return row?.status === 'PROCESSED' || row?.status === 'DISCARDED';
}
