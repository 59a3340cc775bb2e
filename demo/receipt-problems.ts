import type { DemoCounts } from '../cli/page/server/protocol.ts';
import { orderStatus } from '../lambdas/example/orders/order.ts';
import type { InboxRow } from '../lambdas/runtime/store/inbox-row.ts';
import type { BridgeCounts } from './bridge-counts.ts';
import { isLate, isSoldOut, isUnchargeable } from './planned-orders.ts';
import { type Consumer, emailsDue, keptCents, messagesOf, type Readings } from './readings.ts';
import { type Repeat, type Resent, STOCK_PER_SKU } from './shop.ts';

/** The counts of a receipt. */
export interface ReceiptCounts extends DemoCounts {
  readonly processed: Readonly<Record<Consumer, number>>;
}

/** The requests and duplicates sent, to compare with the tables. */
export interface Sent {
  readonly orders: number;
  readonly repeats: readonly Repeat[];
  readonly resent: readonly Resent[];
  /** The ids of the outdated reports that were published. @default none is planned */
  readonly outdated?: readonly string[] | undefined;
  /** The messages at the target of the bridge. @default the order system has no bridge */
  readonly bridge?: BridgeCounts | undefined;
  /** The number of messages in the dead-letter queues before the run, because an engine may be shared. @default 0 */
  readonly deadLettersBefore?: number;
}

/** The kinds of problems, the worst first. `unfinished`: a message or event still waits, or an order has another end than planned. */
const KINDS = ['lost', 'duplicated', 'unfinished'] as const;

/** A difference between the end state and the plan. */
export interface Problem {
  readonly kind: (typeof KINDS)[number];
  /** E.g. `2 orders are not charged`. */
  readonly text: string;
}

type ReceiptCheck = readonly [count: number, kind: Problem['kind'], what: string];

/** Compares the end state with the orders that were planned, and with what was sent. @returns the worst problems first */
export function problemsOf(readings: Readings, sent: Sent, counts: ReceiptCounts): Problem[] {
  const { orders, events, inbox, emails, refunds } = readings;
  const { outdated = [] } = sent;
  const late = orders.filter(isLate);
  const unprocessed = messagesOf(readings).filter((row) => !isDone(row));
  const [unsold, sold] = [orders.filter((order) => !isSold(order)), orders.filter(isSold)];
  const statusIs = (wanted: string) => (order: Readings['orders'][number]) => orderStatus(order) === wanted;
  const surplus = [...emailsDue(readings)].map(([orderId, due]) => (emails.get(orderId) ?? 0) - due);
  const outdatedApplied = outdated.filter((eventId) => !isSuperseded(inbox['order-status'].get(eventId)));
  const keptOf = ({ orderId }: { readonly orderId: string }) => keptCents(readings, orderId);
  const waiting = messagesThatWait(readings);
  // While something waits, its effects are only late. What waits is one message at most.
  const missing = waiting === 0 || unprocessed.length > waiting ? 'lost' : 'unfinished';
  const checks: readonly ReceiptCheck[] = [
    [sent.orders - counts.orders, 'lost', 'orders are missing from the table'],
    [events.length - counts.eventsPublished, 'unfinished', 'events are not published'],
    [unprocessed.length, missing, 'messages are not processed'],
    [sold.length - sold.filter(statusIs('confirmed')).length, 'unfinished', 'orders are not confirmed'],
    [unsold.length - unsold.filter(statusIs('cancelled')).length, 'unfinished', 'orders are not cancelled'],
    [counts.orders - counts.scheduled, 'lost', 'orders have no scheduled expiry'],
    [
      counts.orders - late.length - counts.timersCancelled,
      'unfinished',
      'expiries of orders were not cancelled',
    ],
    [
      orders.filter((order) => hasExpired(order) && !isLate(order)).length,
      'unfinished',
      'orders have expired that could be paid',
    ],
    [
      late.filter((order) => !hasExpired(order)).length,
      'unfinished',
      'orders that were not paid in time have not expired',
    ],
    [
      outdatedApplied.length,
      outdatedApplied.some((eventId) => isDone(inbox['order-status'].get(eventId))) ? 'duplicated' : missing,
      'outdated reports were not superseded',
    ],
    [
      late.length > 0 && sent.outdated?.length === 0 ? 1 : 0,
      'unfinished',
      'outdated reports were not published',
    ],
    [counts.missingCharges, missing, 'orders are not charged'],
    [counts.doubleCharges, 'duplicated', 'charges are duplicates'],
    [counts.refunds - refunds.size, 'duplicated', 'refunds are duplicates'],
    [unsold.filter((order) => keptOf(order) !== 0).length, missing, 'cancelled orders are not refunded'],
    [
      sold.filter(({ orderId }) => refunds.has(orderId)).length,
      'duplicated',
      'confirmed orders are refunded',
    ],
    [
      counts.duplicatesSent - counts.duplicatesAbsorbed,
      waiting === 0 ? 'duplicated' : 'unfinished',
      'duplicates were not absorbed',
    ],
    [surplus.filter((more) => more < 0).length, missing, 'orders have too few e-mails'],
    [surplus.filter((more) => more > 0).length, 'duplicated', 'orders have too many e-mails'],
    [sent.bridge?.lost ?? 0, missing, 'events did not arrive at the target of the bridge'],
    ...stockChecks(readings, missing),
    [readings.deadLetters, 'unfinished', 'messages are in a dead-letter queue'],
    [readings.queued, 'unfinished', 'messages are still in a queue'],
  ];
  return checks
    .filter(([count]) => count !== 0)
    .map(([count, kind, what]) => ({ kind, text: `${count} ${what}` }))
    .sort((a, b) => KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind));
}

/** The result of a run in a few words: a loss or a duplicate before everything else. */
export function headlineOf(problems: readonly Problem[]): string {
  if (problems.length === 0) return 'Nothing lost, nothing duplicated';
  const found = (['lost', 'duplicated'] as const).filter((kind) =>
    problems.some((problem) => problem.kind === kind),
  );
  return found.length === 0 ? 'The run did not end as planned' : `Something was ${found.join(' and ')}`;
}

/** The most messages that can still be processed: those of the queues, and those of the events that are not published. */
function messagesThatWait(readings: Readings): number {
  const unpublished = readings.events.filter(({ row }) => row.status !== 'PUBLISHED');
  return readings.queued + readings.deadLetters + messagesOf({ ...readings, events: unpublished }).length;
}

/** @param missing - the kind of an effect that is missing */
function stockChecks({ orders, events, stock }: Readings, missing: Problem['kind']): ReceiptCheck[] {
  const units = (of: Readings['orders']) =>
    of.flatMap(({ items }) => items).reduce((sum, { quantity }) => sum + quantity, 0);
  const idsOf = (wanted: string) =>
    new Set(events.flatMap(({ envelope: { type, aggregateId } }) => (type === wanted ? [aggregateId] : [])));
  const [reserved, released] = [idsOf('StockReserved'), idsOf('StockReleased')];
  // Inventory writes each event in the transaction that takes or returns the units.
  const held = units(orders.filter(({ orderId }) => reserved.has(orderId) && !released.has(orderId)));
  const ordered = units(orders.filter(isSold));
  const taken = [...stock.values()].reduce((sum, available) => sum + STOCK_PER_SKU - available, 0);
  return [
    [
      Math.max(0, taken - ordered),
      taken > held ? 'duplicated' : 'unfinished',
      'more units of stock were reserved than ordered',
    ],
    [Math.max(0, ordered - taken), missing, 'fewer units of stock were reserved than ordered'],
  ];
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
