import { describe, expect, it } from 'vitest';
import { CONSUMERS, type Consumer, type Readings, type WrittenEvent } from '../../demo/readings.ts';
import { STOCK_PER_SKU } from '../../demo/shop.ts';
import type { InboxRow } from '../../lambdas/runtime/rows.ts';
import { countOrders } from './counts.ts';

function written(type: string, status = 'PUBLISHED'): WrittenEvent {
  const data = { orderId: 'order', items: [{ quantity: 3 }] };
  return { row: { status }, envelope: { type, eventId: type, data } } as unknown as WrittenEvent;
}

const EVENTS = [written('OrderPlaced'), written('PaymentCaptured'), written('StockReserved')];

function processed(...eventIds: string[]): ReadonlyMap<string, InboxRow> {
  return new Map(eventIds.map((eventId) => [eventId, { status: 'PROCESSED' } as InboxRow]));
}

/** One order of three pieces, done in every respect. */
const DONE: Readings = {
  orders: [{ orderId: 'order', payment: 'captured', stock: 'reserved' }],
  events: EVENTS,
  inbox: Object.fromEntries(
    CONSUMERS.map((consumer) => [consumer, processed(...EVENTS.map(({ envelope }) => envelope.eventId))]),
  ) as Record<Consumer, ReadonlyMap<string, InboxRow>>,
  charges: new Map([['order', [1]]]),
  emails: new Map([['order', 1]]),
  stock: new Map([['sku', STOCK_PER_SKU - 3]]),
  queued: 0,
  deadLetters: 0,
};

describe('the count of what was lost', () => {
  it('is nothing when every order is done', () => {
    expect(countOrders(DONE, 1)).toEqual({ lost: 0, doubled: 0 });
  });

  it.each<[string, Partial<Readings>]>([
    ['was never charged', { charges: new Map() }],
    ['has no e-mail', { emails: new Map() }],
    [
      'does not know of its payment',
      { orders: [{ orderId: 'order', payment: 'pending', stock: 'reserved' }] },
    ],
    ['does not know of its stock', { orders: [{ orderId: 'order', payment: 'captured', stock: 'pending' }] }],
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

describe('the count of what was doubled', () => {
  it.each<[string, number, Partial<Readings>]>([
    ['charges', 2, { charges: new Map([['order', [1, 2, 3]]]) }],
    ['e-mails', 1, { emails: new Map([['order', 2]]) }],
    ['events', 1, { events: [...EVENTS, written('PaymentCaptured')] }],
    ['pieces of stock', 3, { stock: new Map([['sku', STOCK_PER_SKU - 6]]) }],
  ])('holds %s beyond what was ordered', (_, count, surplus) => {
    expect(countOrders({ ...DONE, ...surplus }, 1)).toEqual({ lost: 0, doubled: count });
  });
});
