import { isSettled, orderStatus } from '../lambdas/example/orders/order.ts';
import { eventIdTime } from '../lambdas/runtime/store/event-id.ts';
import { CONSUMERS, CONSUMERS_OF, type Consumer, emailsDue, keptCents, type Readings } from './readings.ts';
import { isSoldOut, type Repeat, type Resent, STOCK_PER_SKU } from './shop.ts';

/** A median and a 99th percentile, milliseconds. */
interface Latency {
  readonly p50: number;
  readonly p99: number;
}

/** What a run came to. Everything but what was asked and sent is read back from the tables and queues. */
export interface Receipt {
  /** Orders in the table. */
  readonly orders: number;
  /** Orders that ended `cancelled`: those for goods that are sold out. */
  readonly cancelled: number;
  /** Events that are PUBLISHED in the outbox. */
  readonly eventsPublished: number;
  /** Messages that are PROCESSED, by consumer. */
  readonly processed: Readonly<Record<Consumer, number>>;
  /** Requests and messages that were sent a second time. */
  readonly duplicatesSent: number;
  /** Those of them that left no trace: one order, one event caused, one charge. */
  readonly duplicatesAbsorbed: number;
  /** Charges at the bank. */
  readonly charges: number;
  /** Refunds at the bank: charges of orders that were cancelled after they had been charged. */
  readonly refunds: number;
  /** Charges of an order beyond its first. */
  readonly doubleCharges: number;
  /** Orders that were never charged, for goods that are in stock. */
  readonly missingCharges: number;
  /** E-mails sent. */
  readonly emails: number;
  readonly commitToPublishedMs: Latency;
  readonly commitToChargedMs: Latency;
  /** What is wrong, in words; empty when nothing was lost and nothing doubled. */
  readonly problems: readonly string[];
}

/** What was asked for and sent, to be held against what the tables say. */
export interface Sent {
  readonly orders: number;
  readonly repeats: readonly Repeat[];
  readonly resent: readonly Resent[];
  /** The messages that were in the dead-letter queues before the run: an engine may be shared. @default 0 */
  readonly deadLettersBefore?: number;
}

/** How far a run has come. */
export interface Progress {
  readonly published: number;
  readonly processed: number;
  readonly charged: number;
  /** Whether nothing is left to be done. */
  readonly atRest: boolean;
}

/** Holds what the tables and queues say against what must become of the orders. */
export function progressOf(readings: Readings, ordersAsked: number): Progress {
  const { orders, events, inbox } = readings;
  const published = events.filter(({ row }) => row.status === 'PUBLISHED').length;
  const wanted = events.flatMap(({ envelope }) =>
    (CONSUMERS_OF[envelope.type] ?? []).map(
      (consumer) => inbox[consumer].get(envelope.eventId)?.status === 'PROCESSED',
    ),
  );
  const processed = wanted.filter(Boolean).length;
  return {
    published,
    processed,
    charged: readings.charges.size,
    atRest:
      orders.length >= ordersAsked &&
      orders.every(isSettled) &&
      published === events.length &&
      processed === wanted.length &&
      readings.queued === 0,
  };
}

/** Makes the receipt of a run that has come to rest, or has got stuck. */
export function receiptOf(all: Readings, sent: Sent): Receipt {
  // Not below 0: someone may have redriven an old one meanwhile.
  const deadLetters = Math.max(0, all.deadLetters - (sent.deadLettersBefore ?? 0));
  const readings = { ...all, deadLetters };
  const { orders, events, inbox, charges, refunds, emails } = readings;
  const due = emailsDue(readings);
  const caused = new Map<string, number>();
  for (const { envelope } of events) {
    const cause = `${envelope.causationId} ${envelope.aggregateType}`;
    caused.set(cause, (caused.get(cause) ?? 0) + 1);
  }
  const placed = countBy(
    events
      .filter(({ envelope }) => envelope.type === 'OrderPlaced')
      .map(({ envelope }) => envelope.aggregateId),
  );
  const orderIds = new Map(
    events.map(({ envelope }) => [envelope.eventId, (envelope.data as { orderId: string }).orderId]),
  );

  const absorbedRepeats = sent.repeats.filter(
    ({ orderId, sameAnswer }) => sameAnswer && placed.get(orderId) === 1,
  );
  const atMostOne = (eventId: string, aggregateType: string) =>
    (caused.get(`${eventId} ${aggregateType}`) ?? 0) <= 1;
  const once: Readonly<Record<Consumer, (eventId: string, orderId: string) => boolean>> = {
    payments: (eventId, orderId) =>
      atMostOne(eventId, 'Payment') &&
      (charges.get(orderId)?.length ?? 0) <= 1 &&
      (refunds.get(orderId)?.length ?? 0) <= 1,
    inventory: (eventId) => atMostOne(eventId, 'Reservation'),
    notifications: (_, orderId) => (emails.get(orderId) ?? 0) <= (due.get(orderId) ?? 0),
    'order-status': (eventId) => atMostOne(eventId, 'Order'),
  };
  const absorbedMessages = sent.resent.filter(
    ({ consumer, eventId }) =>
      readings.queued + deadLetters === 0 &&
      inbox[consumer].get(eventId)?.status === 'PROCESSED' &&
      once[consumer](eventId, orderIds.get(eventId) ?? ''),
  );

  const chargeTimes = events.flatMap(({ envelope }) =>
    envelope.type === 'OrderPlaced'
      ? (charges.get(envelope.aggregateId) ?? [])
          .slice(0, 1)
          .map(({ at }) => at - eventIdTime(envelope.eventId))
      : [],
  );
  const publishTimes = events.flatMap(({ row, envelope }) =>
    row.publishedAt === undefined ? [] : [row.publishedAt - eventIdTime(envelope.eventId)],
  );
  const counts = {
    orders: orders.length,
    cancelled: orders.filter((order) => orderStatus(order) === 'cancelled').length,
    eventsPublished: publishTimes.length,
    processed: Object.fromEntries(
      CONSUMERS.map((consumer) => [
        consumer,
        [...inbox[consumer].values()].filter((row) => row.status === 'PROCESSED').length,
      ]),
    ) as Record<Consumer, number>,
    duplicatesSent: sent.repeats.length + sent.resent.length,
    duplicatesAbsorbed: absorbedRepeats.length + absorbedMessages.length,
    charges: [...charges.values()].flat().length,
    refunds: [...refunds.values()].flat().length,
    doubleCharges: [...charges.values()].flat().length - charges.size,
    missingCharges: orders.filter((order) => !isSoldOut(order) && !charges.has(order.orderId)).length,
    emails: [...emails.values()].reduce((sum, made) => sum + made, 0),
  };
  return {
    ...counts,
    commitToPublishedMs: latency(publishTimes),
    commitToChargedMs: latency(chargeTimes),
    problems: problemsOf(readings, sent, counts),
  };
}

function problemsOf(
  readings: Readings,
  sent: Sent,
  counts: Omit<Receipt, 'problems' | `commit${string}`>,
): string[] {
  const { orders, events, inbox, stock, emails, refunds } = readings;
  const unprocessed = events.flatMap(({ envelope }) =>
    (CONSUMERS_OF[envelope.type] ?? []).filter(
      (consumer) => inbox[consumer].get(envelope.eventId)?.status !== 'PROCESSED',
    ),
  );
  const [soldOut, inStock] = [orders.filter(isSoldOut), orders.filter((order) => !isSoldOut(order))];
  const statusIs = (wanted: string) => (order: Readings['orders'][number]) => orderStatus(order) === wanted;
  const ordered = inStock.flatMap(({ items }) => items).reduce((sum, { quantity }) => sum + quantity, 0);
  const taken = [...stock.values()].reduce((sum, available) => sum + STOCK_PER_SKU - available, 0);
  const surplus = [...emailsDue(readings)].map(([orderId, due]) => (emails.get(orderId) ?? 0) - due);
  const keptOf = ({ orderId }: { readonly orderId: string }) => keptCents(readings, orderId);
  const checks: [number, string][] = [
    [sent.orders - counts.orders, 'orders are missing from the table'],
    [events.length - counts.eventsPublished, 'events are not published'],
    [unprocessed.length, 'messages are not processed'],
    [inStock.length - inStock.filter(statusIs('confirmed')).length, 'orders are not confirmed'],
    [soldOut.length - soldOut.filter(statusIs('cancelled')).length, 'orders are not cancelled'],
    [counts.missingCharges, 'orders are not charged'],
    [counts.doubleCharges, 'charges are doubles'],
    [counts.refunds - refunds.size, 'refunds are doubles'],
    [soldOut.filter((order) => keptOf(order) !== 0).length, 'cancelled orders are not refunded'],
    [inStock.filter(({ orderId }) => refunds.has(orderId)).length, 'confirmed orders are refunded'],
    [counts.duplicatesSent - counts.duplicatesAbsorbed, 'duplicates were not absorbed'],
    [surplus.filter((more) => more < 0).length, 'orders have too few e-mails'],
    [surplus.filter((more) => more > 0).length, 'orders have too many e-mails'],
    [taken - ordered, 'pieces of stock more were taken than ordered'],
    [readings.deadLetters, 'messages are in a dead-letter queue'],
    [readings.queued, 'messages are still in a queue'],
  ];
  return checks.filter(([count]) => count !== 0).map(([count, what]) => `${count} ${what}`);
}

/** The median and the 99th percentile of some times, by the nearest rank; 0 without any. */
function latency(times: readonly number[]): Latency {
  const sorted = times.toSorted((a, b) => a - b);
  const rank = (share: number) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
  return { p50: rank(0.5), p99: rank(0.99) };
}

function countBy(keys: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts;
}

/** The receipt as people read it. */
export function printReceipt(receipt: Receipt): string {
  const { processed, commitToPublishedMs: published, commitToChargedMs: charged } = receipt;
  const rows: [string, string | number][] = [
    ['orders placed', receipt.orders],
    ['orders cancelled', receipt.cancelled],
    ['events published', receipt.eventsPublished],
    ...CONSUMERS.map((consumer): [string, number] => [`processed by ${consumer}`, processed[consumer]]),
    ['duplicates sent', receipt.duplicatesSent],
    ['duplicates absorbed', receipt.duplicatesAbsorbed],
    ['e-mails sent', receipt.emails],
    ['charges at the bank', receipt.charges],
    ['refunds', receipt.refunds],
    ['double charges', receipt.doubleCharges],
    ['missing charges', receipt.missingCharges],
    ['commit -> published', `p50 ${published.p50} ms, p99 ${published.p99} ms`],
    ['commit -> charged', `p50 ${charged.p50} ms, p99 ${charged.p99} ms`],
  ];
  const verdict =
    receipt.problems.length === 0
      ? 'Nothing lost, nothing doubled.'
      : ['Something is wrong:', ...receipt.problems.map((problem) => `  ${problem}`)].join('\n');
  return [...rows.map(([name, value]) => `  ${name.padEnd(28)}${value}`), '', verdict].join('\n');
}
