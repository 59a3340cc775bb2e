import { describe, expect, it } from 'vitest';
import { CONSUMERS, type Consumer, type Readings, type WrittenEvent } from '../../demo/readings.ts';
import { STOCK_PER_SKU } from '../../demo/shop.ts';
import type { InboxRow } from '../../lambdas/runtime/store/inbox-row.ts';
import { countOrders } from './counts.ts';

function written(type: string, status = 'PUBLISHED'): WrittenEvent {
  const data = { orderId: 'order', items: [{ quantity: 3 }] };
  return { row: { status }, envelope: { type, eventId: type, data } } as unknown as WrittenEvent;
}

const CHARGE = { at: 1, amountCents: 300 };

const EVENTS = [written('OrderPlaced'), written('PaymentCaptured'), written('StockReserved')];

function processed(...eventIds: string[]): ReadonlyMap<string, InboxRow> {
  return new Map(eventIds.map((eventId) => [eventId, { status: 'PROCESSED' } as InboxRow]));
}

const ORDER: Readings['orders'][number] = {
  orderId: 'order',
  customerId: 'customer',
  items: [{ sku: 'sku', quantity: 3, unitPrice: 100 }],
  totalCents: 300,
  payment: 'captured',
  stock: 'reserved',
};

/** One order of three pieces, done in every respect. */
const DONE: Readings = {
  orders: [ORDER],
  events: EVENTS,
  expiries: [],
  inbox: Object.fromEntries(
    CONSUMERS.map((consumer) => [consumer, processed(...EVENTS.map(({ envelope }) => envelope.eventId))]),
  ) as Record<Consumer, ReadonlyMap<string, InboxRow>>,
  charges: new Map([['order', [CHARGE]]]),
  refunds: new Map(),
  emails: new Map([['order', 1]]),
  stock: new Map([['sku', STOCK_PER_SKU - 3]]),
  queued: 0,
  deadLetters: 0,
};

describe('the count of what was lost', () => {
  it('is nothing when every order is done', () => {
    expect(countOrders(DONE, 1)).toEqual({ lost: 0, duplicated: 0 });
  });

  it.each<[string, Partial<Readings>]>([
    ['was never charged', { charges: new Map() }],
    ['has no e-mail', { emails: new Map() }],
    ['was refunded', { refunds: new Map([['order', [CHARGE]]]) }],
    ['does not know of its payment', { orders: [{ ...ORDER, payment: 'pending' }] }],
    ['does not know of its stock', { orders: [{ ...ORDER, stock: 'pending' }] }],
    ['was cancelled', { orders: [{ ...ORDER, payment: 'refunded', stock: 'rejected' }] }],
    ['lacks an event', { events: EVENTS.slice(0, 2) }],
    [
      'has an event that is PENDING',
      { events: [...EVENTS.slice(0, 2), written('StockReserved', 'PENDING')] },
    ],
    ['has a message that is not processed', { inbox: { ...DONE.inbox, payments: processed() } }],
    ['is not in the table', { orders: [] }],
  ])('holds an order that %s', (_, lacking) => {
    expect(countOrders({ ...DONE, ...lacking }, 1).lost).toBe(1);
  });

  it('leaves out an order that is set aside, and that one only', () => {
    const dead = { ...DONE, events: [written('OrderPlaced', 'DEAD')] };
    expect(countOrders(dead, 1, new Set(['order'])).lost).toBe(0);
    expect(countOrders(dead, 1, new Set(['another'])).lost).toBe(1);
  });
});

describe('the count of what was duplicated', () => {
  it.each<[string, number, Partial<Readings>]>([
    ['charges', 2, { charges: new Map([['order', [CHARGE, CHARGE, CHARGE]]]) }],
    ['e-mails', 1, { emails: new Map([['order', 2]]) }],
    ['events', 1, { events: [...EVENTS, written('PaymentCaptured')] }],
    ['pieces of stock', 3, { stock: new Map([['sku', STOCK_PER_SKU - 6]]) }],
  ])('holds %s beyond what was ordered', (_, count, surplus) => {
    expect(countOrders({ ...DONE, ...surplus }, 1)).toMatchObject({ duplicated: count });
  });
});

describe('an order for goods that are sold out', () => {
  const events = ['OrderPlaced', 'PaymentCaptured', 'StockRejected', 'PaymentRefunded', 'OrderCancelled'];
  const cancelled: Readings = {
    ...DONE,
    orders: [
      {
        ...ORDER,
        items: [{ sku: 'sold-out', quantity: 3, unitPrice: 100 }],
        payment: 'refunded',
        stock: 'rejected',
      },
    ],
    events: events.map((type) => written(type)),
    inbox: Object.fromEntries(CONSUMERS.map((consumer) => [consumer, processed(...events)])) as Record<
      Consumer,
      ReadonlyMap<string, InboxRow>
    >,
    refunds: new Map([['order', [CHARGE]]]),
    emails: new Map([['order', 2]]),
    stock: new Map(),
  };

  it('is done when it is cancelled and refunded, and its customer is notified', () => {
    expect(countOrders(cancelled, 1)).toEqual({ lost: 0, duplicated: 0 });
  });

  it.each<[string, Partial<Readings>]>([
    ['is not refunded', { refunds: new Map() }],
    ['is refunded in part', { refunds: new Map([['order', [{ at: 1, amountCents: 299 }]]]) }],
    ['is not cancelled', { orders: cancelled.orders.map((order) => ({ ...order, payment: 'captured' })) }],
    ['has its receipt only', { emails: new Map([['order', 1]]) }],
    ['has not announced its end', { events: cancelled.events.slice(0, 4) }],
  ])('is lost when it %s', (_, lacking) => {
    expect(countOrders({ ...cancelled, ...lacking }, 1).lost).toBe(1);
  });

  it('is duplicated when it is refunded twice', () => {
    const twice = { ...cancelled, refunds: new Map([['order', [CHARGE, CHARGE]]]) };
    expect(countOrders(twice, 1)).toMatchObject({ duplicated: 1 });
  });
});
