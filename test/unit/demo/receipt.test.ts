import { describe, expect, test } from 'vitest';
import type { BridgeCounts } from '../../../demo/bridge-counts.ts';
import {
  CONSUMERS,
  CONSUMERS_OF,
  type Consumer,
  type Readings,
  type WrittenEvent,
} from '../../../demo/readings.ts';
import { progressOf, receiptOf } from '../../../demo/receipt.ts';
import { printReceipt } from '../../../demo/receipt-text.ts';
import { STOCK_PER_SKU } from '../../../demo/shop.ts';
import { mintEventId } from '../../../lambdas/runtime/store/event-id.ts';
import type { InboxRow } from '../../../lambdas/runtime/store/inbox-row.ts';
import type { OutboxRow } from '../../../lambdas/runtime/store/outbox-row.ts';

const AT = Date.UTC(2026, 0, 1);
const ORDER = 'order-1';
const CHARGE = { at: AT + 100, amountCents: 900 };

function event(type: string, aggregateType: string, causationId?: string): WrittenEvent {
  const eventId = mintEventId(AT, 1);
  const data = { orderId: ORDER };
  return {
    row: { status: 'PUBLISHED', publishedAt: AT + 30 },
    envelope: { eventId, type, aggregateType, aggregateId: ORDER, causationId, data },
  } as never as WrittenEvent;
}

/** The scheduled expiry of the order. */
function expiry(status: OutboxRow['status']): WrittenEvent {
  const { row, envelope } = event('OrderExpired', 'Order');
  return { envelope, row: { ...row, dueAt: AT + 5_000, status } as OutboxRow };
}

/** Inbox rows that say that every consumer has processed what it must see. */
function processedBy(events: readonly WrittenEvent[]): Record<Consumer, Map<string, InboxRow>> {
  const processed = (): InboxRow => ({ status: 'PROCESSED', processedAt: AT + 2_050 }) as InboxRow;
  return Object.fromEntries(
    CONSUMERS.map((consumer) => [
      consumer,
      new Map(
        events
          .filter(({ envelope }) => CONSUMERS_OF[envelope.type]?.includes(consumer))
          .map(({ envelope }) => [envelope.eventId, processed()]),
      ),
    ]),
  ) as Record<Consumer, Map<string, InboxRow>>;
}

/** What the tables say of one order that went as it should. */
function readings(change: Partial<Readings> = {}): Readings {
  const placed = event('OrderPlaced', 'Order');
  const events = [
    placed,
    event('PaymentCaptured', 'Payment', placed.envelope.eventId),
    event('StockReserved', 'Reservation', placed.envelope.eventId),
  ];
  return {
    orders: [
      {
        orderId: ORDER,
        customerId: 'customer',
        items: [{ sku: 'sku', quantity: 2, unitPrice: 450 }],
        totalCents: 900,
        payment: 'captured',
        stock: 'reserved',
      },
    ],
    events,
    expiries: [expiry('CANCELLED')],
    inbox: processedBy(events),
    charges: new Map([[ORDER, [CHARGE]]]),
    refunds: new Map(),
    emails: new Map([[ORDER, 1]]),
    stock: new Map([['sku', STOCK_PER_SKU - 2]]),
    queued: 0,
    deadLetters: 0,
    ...change,
  };
}

const receipt = (change: Partial<Readings> = {}) => {
  const read = readings(change);
  const eventId = read.events[0]?.envelope.eventId ?? '';
  return receiptOf(read, {
    orders: 1,
    repeats: [{ orderId: ORDER, sameAnswer: true }],
    resent: [
      { consumer: 'payments', eventId },
      { consumer: 'inventory', eventId },
    ],
  });
};

test('a successful run reports no problems', () => {
  expect(receipt()).toMatchObject({
    orders: 1,
    cancelled: 0,
    expired: 0,
    scheduled: 1,
    timersCancelled: 1,
    superseded: 0,
    eventsPublished: 3,
    processed: { payments: 1, inventory: 1, notifications: 1, 'order-status': 2 },
    duplicatesSent: 3,
    duplicatesAbsorbed: 3,
    charges: 1,
    refunds: 0,
    doubleCharges: 0,
    missingCharges: 0,
    emails: 1,
    confirmed: 1,
    commitToPublishedMs: { p50: 30, p90: 30, p99: 30 },
    commitToProcessedMs: { p50: 2_050, p90: 2_050, p99: 2_050 },
    commitToChargedMs: { p50: 100, p90: 100, p99: 100 },
    perSecond: { from: AT, placed: [1, 0, 0], published: [3, 0, 0], processed: [0, 0, 5] },
    headline: 'Nothing lost, nothing duplicated',
    problems: [],
  });
  expect(progressOf(readings(), 1).atRest).toBe(true);
});

test('the printed receipt begins with its sentence, has about ten lines, and the other counts with --verbose', () => {
  expect(printReceipt(receipt())).toBe(`Nothing lost, nothing duplicated: 1 order, 3 duplicates absorbed.

  orders                      1: 1 confirmed, 0 cancelled
  events published            3
  messages processed          5 by 4 consumers
  duplicates                  3 sent, 3 absorbed
  charges at the bank         1: 0 double, 0 missing, 0 refunded
  e-mails sent                1

On a local AWS on this machine:
  commit -> published         p50 30 ms, p90 30 ms, p99 30 ms
  commit -> processed         p50 2050 ms, p90 2050 ms, p99 2050 ms
  commit -> charged           p50 100 ms, p90 100 ms, p99 100 ms`);
  const verbose = printReceipt(receipt(), { isVerbose: true });
  expect(verbose.startsWith(printReceipt(receipt()))).toBe(true);
  expect(verbose).toMatch(/^ {2}processed by order-status +2$/m);
});

test.each<[string, Partial<Readings>, string]>([
  ['a loss', { emails: new Map() }, 'Something was lost: 1 orders have too few e-mails.'],
  [
    'a duplicate',
    { emails: new Map([[ORDER, 2]]) },
    'Something was duplicated: 1 orders have too many e-mails.',
  ],
  [
    'a loss and a duplicate',
    { emails: new Map([[ORDER, 2]]), charges: new Map() },
    'Something was lost and duplicated: 1 orders are not charged (and 1 more).',
  ],
  [
    'a message that is left',
    { deadLetters: 1, emails: new Map() },
    'The run did not end as planned: 2 duplicates were not absorbed (and 2 more).',
  ],
  [
    'units that were not reserved',
    { stock: new Map() },
    'Something was lost: 2 fewer units of stock were reserved than ordered.',
  ],
  [
    'units that are not reserved yet',
    { stock: new Map(), queued: 1 },
    'The run did not end as planned: 2 duplicates were not absorbed (and 2 more).',
  ],
  [
    'more messages that are not processed than wait',
    { inbox: processedBy([]), deadLetters: 1 },
    'Something was lost: 5 messages are not processed (and 2 more).',
  ],
])('the first sentence names %s', (_what, change, sentence) => {
  const [first] = printReceipt(receipt(change)).split('\n');
  expect(first).toContain(sentence);
});

test.each<[string, Partial<Readings>, object, string]>([
  [
    'a double charge',
    { charges: new Map([[ORDER, [CHARGE, CHARGE]]]) },
    { doubleCharges: 1, duplicatesAbsorbed: 2 },
    '1 charges are duplicates',
  ],
  ['a missing charge', { charges: new Map() }, { missingCharges: 1 }, '1 orders are not charged'],
  ['a lost order', { orders: [] }, { orders: 0 }, '1 orders are missing'],
  [
    'a refund of an order that was delivered',
    { refunds: new Map([[ORDER, [CHARGE]]]) },
    { refunds: 1 },
    '1 confirmed orders are refunded',
  ],
  ['two e-mails', { emails: new Map([[ORDER, 2]]) }, { emails: 2 }, '1 orders have too many e-mails'],
  ['no e-mail', { emails: new Map() }, { emails: 0 }, '1 orders have too few e-mails'],
  ['stock taken twice', { stock: new Map([['sku', STOCK_PER_SKU - 4]]) }, {}, '2 more units of stock'],
  [
    'an expiry that is not scheduled',
    { expiries: [] },
    { scheduled: 0 },
    '1 orders have no scheduled expiry',
  ],
  [
    'an expiry that is not cancelled',
    { expiries: [expiry('PENDING')] },
    { timersCancelled: 0 },
    '1 expiries of orders were not cancelled',
  ],
  ['a dead letter', { deadLetters: 1 }, { duplicatesAbsorbed: 1 }, '1 messages are in a dead-letter queue'],
  ['a message left', { queued: 1 }, { duplicatesAbsorbed: 1 }, '1 messages are still in a queue'],
])('%s is a problem', (_what, change, counts, problem) => {
  expect(receipt(change)).toMatchObject(counts);
  expect(receipt(change).problems.join('\n')).toContain(problem);
  expect(printReceipt(receipt(change))).toContain(problem);
  expect(printReceipt(receipt(change))).not.toContain('Nothing lost');
});

test('a message whose handler asked for a wait has no latency until it is processed', () => {
  const read = readings();
  for (const row of read.inbox.payments.values())
    Object.assign(row, { processedAt: AT + 20_000, pastAttempts: [{ at: AT, attempt: 1, ended: 'waited' }] });
  const { commitToProcessedMs, perSecond } = receiptOf(read, { orders: 1, repeats: [], resent: [] });
  expect(commitToProcessedMs.p99).toBe(2_050);
  expect(perSecond.processed.at(-1)).toBe(1);
});

test('the receipt shows what the limit of the bank allowed, and the messages of batches', () => {
  const placed = Array.from({ length: 5 }, () => event('OrderPlaced', 'Order'));
  const read = readings({ events: placed, inbox: processedBy(placed) });
  const starts = [0, 400, 999, 1_000, 5_000];
  const limit = { name: 'OrderPlaced', key: 'charges', slotAt: AT };
  const waits = [
    { at: AT, attempt: 1, ended: 'waited', wait: { since: AT, times: 1, limit } },
    { at: AT, attempt: 1, ended: 'failed' },
  ];
  [...read.inbox.payments.values()].forEach((row, i) => {
    Object.assign(
      row,
      { effects: { charge: { startedAt: AT + Number(starts[i]) } } },
      i === 4 && { pastAttempts: waits },
    );
  });
  [...read.inbox.inventory.values()].forEach((row, i) => {
    Object.assign(row, { fence: ['a', 'a', 'b', 'c', 'c'][i] }, i === 4 && { status: 'FAILED' });
  });
  const made = receiptOf(read, { orders: 1, repeats: [], resent: [] });
  expect(made).toMatchObject({
    bankLimit: { perSecond: 10, burst: 10, allowedInASecond: 20, mostInASecond: 3, waited: 1 },
    batches: { messages: 2, transactions: 1, largest: 2 },
  });
  const verbose = printReceipt(made, { isVerbose: true });
  expect(verbose).toMatch(/^ {2}charges in one second +3 of 20 that the limit allows$/m);
  expect(verbose).toMatch(/^ {2}reserved in batches +2 in 1 transactions$/m);
});

test('dead letters from before the run do not count', () => {
  const sent = { orders: 1, repeats: [], resent: [], deadLettersBefore: 2 };
  expect(receiptOf(readings({ deadLetters: 2 }), sent).problems).toEqual([]);
  // An operator may have taken one out meanwhile.
  expect(receiptOf(readings({ deadLetters: 1 }), sent).problems).toEqual([]);
  expect(receiptOf(readings({ deadLetters: 3 }), sent).problems).toEqual([
    '1 messages are in a dead-letter queue',
  ]);
});

test('an event that is not published, and a message that is not processed, are problems and no rest', () => {
  const pending = readings();
  Object.assign(pending.events[1]?.row ?? {}, { status: 'PENDING', publishedAt: undefined });
  expect(receiptOf(pending, { orders: 1, repeats: [], resent: [] }).problems).toEqual([
    '1 events are not published',
  ]);
  expect(progressOf(pending, 1).atRest).toBe(false);

  const failed = readings();
  for (const row of failed.inbox.payments.values()) Object.assign(row, { status: 'FAILED' });
  expect(receiptOf(failed, { orders: 1, repeats: [], resent: [] }).problems.join()).toContain(
    'messages are not processed',
  );
  expect(progressOf(failed, 1).atRest).toBe(false);
});

test('a second event of one cause is a duplicate that was not absorbed', () => {
  const read = readings();
  const eventId = read.events[0]?.envelope.eventId ?? '';
  const twice = readings({ ...read, events: [...read.events, event('PaymentCaptured', 'Payment', eventId)] });
  expect(
    receiptOf(twice, { orders: 1, repeats: [], resent: [{ consumer: 'payments', eventId }] })
      .duplicatesAbsorbed,
  ).toBe(0);
});

/** What the tables say of one order that was charged, for goods that are sold out. */
function soldOut(change: Partial<Readings> = {}): Readings {
  const placed = event('OrderPlaced', 'Order');
  const rejected = event('StockRejected', 'Reservation', placed.envelope.eventId);
  const refunded = event('PaymentRefunded', 'Payment', rejected.envelope.eventId);
  const events = [
    placed,
    event('PaymentCaptured', 'Payment', placed.envelope.eventId),
    rejected,
    refunded,
    event('OrderCancelled', 'Order', refunded.envelope.eventId),
  ];
  return readings({
    orders: readings().orders.map((order) => ({
      ...order,
      items: [{ sku: 'a-sold-out', quantity: 2, unitPrice: 450 }],
      payment: 'refunded',
      stock: 'rejected',
    })),
    events,
    inbox: processedBy(events),
    refunds: new Map([[ORDER, [CHARGE]]]),
    emails: new Map([[ORDER, 2]]),
    stock: new Map(),
    ...change,
  });
}

const soldOutReceipt = (change: Partial<Readings> = {}) => {
  const read = soldOut(change);
  const resent = read.events.flatMap(({ envelope }) =>
    (CONSUMERS_OF[envelope.type] ?? []).map((consumer) => ({ consumer, eventId: envelope.eventId })),
  );
  return receiptOf(read, { orders: 1, repeats: [], resent });
};

test('an order for sold-out goods is charged, refunded and cancelled, and the receipt shows both', () => {
  expect(soldOutReceipt()).toMatchObject({
    cancelled: 1,
    charges: 1,
    refunds: 1,
    missingCharges: 0,
    emails: 2,
    duplicatesSent: 9,
    duplicatesAbsorbed: 9,
    problems: [],
  });
  for (const line of [/^ {2}orders cancelled +1$/m, /^ {2}refunds +1$/m]) {
    expect(printReceipt(soldOutReceipt(), { isVerbose: true })).toMatch(line);
  }
  expect(progressOf(soldOut(), 1).atRest).toBe(true);
});

test('an order cancelled before its charge has nothing to refund', () => {
  const uncharged = { charges: new Map(), refunds: new Map(), emails: new Map([[ORDER, 2]]) };
  expect(soldOutReceipt(uncharged)).toMatchObject({ cancelled: 1, refunds: 0, problems: [] });
});

test.each<[string, Partial<Readings>, string]>([
  ['a charge that is kept', { refunds: new Map() }, '1 cancelled orders are not refunded'],
  ['a refund of a part', { refunds: new Map([[ORDER, [{ ...CHARGE, amountCents: 1 }]]]) }, 'not refunded'],
  ['a second refund', { refunds: new Map([[ORDER, [CHARGE, CHARGE]]]) }, '1 refunds are duplicates'],
  [
    'an order that does not end',
    { orders: soldOut().orders.map((order) => ({ ...order, payment: 'captured' })) },
    '1 orders are not cancelled',
  ],
  ['a customer who is not told', { emails: new Map([[ORDER, 1]]) }, '1 orders have too few e-mails'],
])('%s is a problem of a cancelled order', (_what, change, problem) => {
  expect(soldOutReceipt(change).problems.join('\n')).toContain(problem);
});

const REPORT = 'outdated';

/** What the tables say of one order that was not paid in time, after an outdated report about it. */
function late(change: Partial<Readings> = {}): Readings {
  const placed = event('OrderPlaced', 'Order');
  const expired = expiry('PUBLISHED');
  const cancelled = event('PaymentCancelled', 'Payment', placed.envelope.eventId);
  const released = event('StockReleased', 'Reservation', cancelled.envelope.eventId);
  const events = [
    placed,
    expired,
    event('StockReserved', 'Reservation', placed.envelope.eventId),
    cancelled,
    released,
    event('OrderCancelled', 'Order', released.envelope.eventId),
  ];
  const inbox = processedBy(events);
  inbox['order-status'].set(REPORT, { status: 'PROCESSED', supersededBy: 2 } as InboxRow);
  return readings({
    orders: readings().orders.map((order) => ({
      ...order,
      customerId: 'run-late',
      payment: 'cancelled',
      stock: 'released',
      expired: true,
    })),
    events,
    expiries: [expired],
    inbox,
    charges: new Map(),
    stock: new Map(),
    ...change,
  });
}

const lateReceipt = (change: Partial<Readings> = {}, outdated: readonly string[] = [REPORT]) =>
  receiptOf(late(change), { orders: 1, repeats: [], resent: [], outdated });

test('an order that is not paid in time expires, and the receipt shows it', () => {
  const made = lateReceipt();
  expect(made).toMatchObject({
    cancelled: 1,
    expired: 1,
    scheduled: 1,
    timersCancelled: 0,
    superseded: 1,
    eventsPublished: 6,
    problems: [],
  });
  expect(made.commitToPublishedMs.p99).toBe(30);
  expect(printReceipt(made, { isVerbose: true })).toMatch(/^ {2}orders expired +1$/m);
});

test.each<[string, Partial<Readings>, string]>([
  [
    'a planned expiry that did not happen',
    { orders: late().orders.map((order) => ({ ...order, expired: false })) },
    '1 orders that were not paid in time have not expired',
  ],
  [
    'an ordinary order that expired',
    { orders: late().orders.map((order) => ({ ...order, customerId: 'run-7' })) },
    '1 orders have expired that could be paid',
  ],
  [
    'an outdated report that was applied',
    { inbox: processedBy(late().events) },
    '1 outdated reports were not superseded',
  ],
])('%s is a problem', (_what, change, problem) => {
  expect(lateReceipt(change).problems.join('\n')).toContain(problem);
});

test('units that an expired order still holds, and an outdated report that waits, are unfinished', () => {
  const read = late();
  const unreleased = read.events.filter(({ envelope }) => envelope.type !== 'StockReleased');
  const inbox = processedBy(read.events); // without the report
  const stock = new Map([['sku', STOCK_PER_SKU - 2]]);
  const made = lateReceipt({ events: unreleased, inbox, stock, queued: 1 });
  expect(made.headline).toBe('The run did not end as planned');
  expect(made.problems).toContain('2 more units of stock were reserved than ordered');
  expect(made.problems).toContain('1 outdated reports were not superseded');
  // The same units, once they have been released, were taken twice.
  expect(lateReceipt({ stock, queued: 1 }).headline).toBe('Something was duplicated');
});

test('an outdated report that was applied is a duplicate', () => {
  const { events } = late();
  const inbox = processedBy(events);
  inbox['order-status'].set(REPORT, { status: 'PROCESSED' } as InboxRow);
  expect(lateReceipt({ inbox, events, queued: 1 }).headline).toBe('Something was duplicated');
});

test('an outdated report that was not published is a problem', () => {
  expect(lateReceipt({}, []).problems).toEqual(['1 outdated reports were not published']);
});

describe('with a bridge', () => {
  const counts = { target: 'JetStream stream orders', sent: 1, received: 2, distinct: 1, lost: 0 };
  const read = readings();
  const placedId = read.events[0]?.envelope.eventId ?? '';
  const withBridge = (bridge: BridgeCounts) =>
    receiptOf(read, { orders: 1, repeats: [], resent: [], bridge });

  test('the receipt shows what arrived at its target', () => {
    const made = withBridge(counts);
    expect(made).toMatchObject({ bridge: counts, problems: [] });
    expect(printReceipt(made)).toMatch(/at JetStream stream orders +2 received, 1 distinct, 0 lost/);
  });

  test('an event that did not arrive is a problem', () => {
    const { problems } = withBridge({ ...counts, received: 0, distinct: 0, lost: 1 });
    expect(problems).toEqual(['1 events did not arrive at the target of the bridge']);
  });

  test('the run waits until the bridge has processed its events', () => {
    expect(progressOf(readings({ bridge: new Map() }), 1)).toMatchObject({ expected: 6, atRest: false });
    const bridge = new Map([[placedId, { status: 'PROCESSED' } as InboxRow]]);
    const { atRest, processed } = progressOf({ ...read, bridge }, 1);
    expect({ atRest, processed }).toEqual({ atRest: true, processed: 6 });
  });
});
