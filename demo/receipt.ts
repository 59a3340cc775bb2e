import { eventIdTime } from '../lambdas/runtime/event-id.ts';
import { CONSUMERS, CONSUMERS_OF, type Consumer, type Readings } from './readings.ts';
import { type Repeat, type Resent, STOCK_PER_SKU } from './shop.ts';

/** A median and a 99th percentile, milliseconds. */
interface Latency {
  readonly p50: number;
  readonly p99: number;
}

/** What a run came to. Everything but what was asked and sent is read back from the tables and queues. */
export interface Receipt {
  /** Orders in the table. */
  readonly orders: number;
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
  /** Charges of an order beyond its first. */
  readonly doubleCharges: number;
  /** Orders that were never charged. */
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
      orders.every((order) => order.payment !== 'pending' && order.stock !== 'pending') &&
      published === events.length &&
      processed === wanted.length &&
      readings.queued === 0,
  };
}

/** Makes the receipt of a run that has come to rest, or has got stuck. */
export function receiptOf(readings: Readings, sent: Sent): Receipt {
  const { orders, events, inbox, charges, emails } = readings;
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
  const once: Readonly<Record<Consumer, (eventId: string) => boolean>> = {
    payments: (eventId) =>
      caused.get(`${eventId} Payment`) === 1 && charges.get(orderIds.get(eventId) ?? '')?.length === 1,
    inventory: (eventId) => caused.get(`${eventId} Reservation`) === 1,
    notifications: (eventId) => emails.get(orderIds.get(eventId) ?? '') === 1,
    'order-status': () => true,
  };
  const absorbedMessages = sent.resent.filter(
    ({ consumer, eventId }) =>
      readings.queued + readings.deadLetters === 0 &&
      inbox[consumer].get(eventId)?.status === 'PROCESSED' &&
      once[consumer](eventId),
  );

  const chargeTimes = events.flatMap(({ envelope }) =>
    envelope.type === 'OrderPlaced'
      ? (charges.get(envelope.aggregateId) ?? []).slice(0, 1).map((at) => at - eventIdTime(envelope.eventId))
      : [],
  );
  const publishTimes = events.flatMap(({ row, envelope }) =>
    row.publishedAt === undefined ? [] : [row.publishedAt - eventIdTime(envelope.eventId)],
  );
  const counts = {
    orders: orders.length,
    eventsPublished: publishTimes.length,
    processed: Object.fromEntries(
      CONSUMERS.map((consumer) => [
        consumer,
        [...inbox[consumer].values()].filter((row) => row.status === 'PROCESSED').length,
      ]),
    ) as Record<Consumer, number>,
    duplicatesSent: sent.repeats.length + sent.resent.length,
    duplicatesAbsorbed: absorbedRepeats.length + absorbedMessages.length,
    charges: [...charges.values()].reduce((sum, made) => sum + made.length, 0),
    doubleCharges: [...charges.values()].reduce((sum, made) => sum + made.length - 1, 0),
    missingCharges: orders.filter((order) => !charges.has(order.orderId)).length,
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
  const { events, inbox, stock, emails } = readings;
  const unprocessed = events.flatMap(({ envelope }) =>
    (CONSUMERS_OF[envelope.type] ?? []).filter(
      (consumer) => inbox[consumer].get(envelope.eventId)?.status !== 'PROCESSED',
    ),
  );
  const ordered = events
    .filter(({ envelope }) => envelope.type === 'OrderPlaced')
    .flatMap(({ envelope }) => (envelope.data as { items: { quantity: number }[] }).items)
    .reduce((sum, { quantity }) => sum + quantity, 0);
  const taken = [...stock.values()].reduce((sum, available) => sum + STOCK_PER_SKU - available, 0);
  const twice = [...emails.values()].filter((made) => made > 1).length;
  const checks: [number, string][] = [
    [sent.orders - counts.orders, 'orders are missing from the table'],
    [events.length - counts.eventsPublished, 'events are not published'],
    [unprocessed.length, 'messages are not processed'],
    [counts.missingCharges, 'orders are not charged'],
    [counts.doubleCharges, 'charges are doubles'],
    [counts.duplicatesSent - counts.duplicatesAbsorbed, 'duplicates were not absorbed'],
    [counts.orders - emails.size, 'orders have no e-mail'],
    [twice, 'orders have more than one e-mail'],
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
    ['events published', receipt.eventsPublished],
    ...CONSUMERS.map((consumer): [string, number] => [`processed by ${consumer}`, processed[consumer]]),
    ['duplicates sent', receipt.duplicatesSent],
    ['duplicates absorbed', receipt.duplicatesAbsorbed],
    ['e-mails sent', receipt.emails],
    ['charges at the bank', receipt.charges],
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
