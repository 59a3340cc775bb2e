import { isSettled, orderStatus } from '../lambdas/example/orders/order.ts';
import type { InboxRow } from '../lambdas/runtime/store/inbox-row.ts';
import type { BridgeCounts } from './bridge-counts.ts';
import { CONSUMERS, type Consumer, emailsDue, messagesOf, type Readings } from './readings.ts';
import {
  hasExpired,
  headlineOf,
  isDone,
  isSold,
  isSuperseded,
  problemsOf,
  type ReceiptCounts,
  type Sent,
} from './receipt-problems.ts';
import { type RunFigures, runFigures } from './run-figures.ts';
import { type WorkCounts, workCounts } from './work-counts.ts';

/** The result of a run. Everything except the number of requested orders and sent duplicates is read back from the tables and queues. */
export interface Receipt extends ReceiptCounts, RunFigures, WorkCounts {
  /** The result in a few words, e.g. `Nothing lost, nothing duplicated`. */
  readonly headline: string;
  /** The messages at the target of `--bridge`; only with it. */
  readonly bridge?: BridgeCounts;
  /** The problems, as text; empty if nothing was lost or duplicated. */
  readonly problems: readonly string[];
}

/** The progress of a run. */
export interface Progress {
  readonly published: number;
  readonly processed: number;
  /** The messages expected from the events written so far. */
  readonly expected: number;
  /** True once every order has settled, and every event is published and processed. Duplicates may still wait. */
  readonly finished: boolean;
  /** True once the queues are empty too. */
  readonly atRest: boolean;
}

/** Compares the tables and queues with the expected end state of the orders. */
export function progressOf(readings: Readings, ordersAsked: number): Progress {
  const { orders, events } = readings;
  const published = events.filter(({ row }) => row.status === 'PUBLISHED').length;
  const wanted = messagesOf(readings);
  const processed = wanted.filter(isDone).length;
  const finished =
    orders.length >= ordersAsked &&
    orders.every(isSettled) &&
    published === events.length &&
    processed === wanted.length;
  return {
    published,
    processed,
    expected: wanted.length,
    finished,
    atRest: finished && readings.queued === 0,
  };
}

/** Creates the receipt of a run that has settled or is stuck. */
export function receiptOf(all: Readings, sent: Sent): Receipt {
  // Not below 0: an old dead letter may have been redriven meanwhile.
  const deadLetters = Math.max(0, all.deadLetters - (sent.deadLettersBefore ?? 0));
  const readings = { ...all, deadLetters };
  const { orders, events, expiries, inbox, charges, refunds, emails } = readings;
  const due = emailsDue(readings);
  const caused = countBy(events.map(({ envelope }) => `${envelope.causationId} ${envelope.aggregateType}`));
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

  const counts = {
    orders: orders.length,
    confirmed: orders.filter((order) => orderStatus(order) === 'confirmed').length,
    cancelled: orders.filter((order) => orderStatus(order) === 'cancelled').length,
    expired: orders.filter(hasExpired).length,
    scheduled: expiries.length,
    timersCancelled: expiries.filter(({ row }) => row.status === 'CANCELLED').length,
    eventsPublished: events.filter(({ row }) => row.status === 'PUBLISHED').length,
    processed: Object.fromEntries(
      CONSUMERS.map((consumer) => [
        consumer,
        [...inbox[consumer].values()].filter((row) => row.status === 'PROCESSED').length,
      ]),
    ) as Record<Consumer, number>,
    rejected: countOf(inbox, ({ status }) => status === 'DISCARDED'),
    superseded: countOf(inbox, isSuperseded),
    duplicatesSent: sent.repeats.length + sent.resent.length,
    duplicatesAbsorbed: absorbedRepeats.length + absorbedMessages.length,
    charges: [...charges.values()].flat().length,
    refunds: [...refunds.values()].flat().length,
    doubleCharges: [...charges.values()].flat().length - charges.size,
    missingCharges: orders.filter((order) => isSold(order) && !charges.has(order.orderId)).length,
    emails: [...emails.values()].reduce((sum, made) => sum + made, 0),
  };
  const problems = problemsOf(readings, sent, counts);
  return {
    headline: headlineOf(problems),
    ...counts,
    ...runFigures(readings),
    ...workCounts(readings),
    ...(sent.bridge !== undefined && { bridge: sent.bridge }),
    problems: problems.map(({ text }) => text),
  };
}

function countOf(inbox: Readings['inbox'], holds: (row: InboxRow) => boolean): number {
  return CONSUMERS.flatMap((consumer) => [...inbox[consumer].values()].filter(holds)).length;
}

function countBy(keys: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts;
}
