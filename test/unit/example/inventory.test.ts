import { describe, expect, it } from 'vitest';
import { type OrderItem, OrderPlaced, PaymentDeclined } from '../../../lambdas/example/events.ts';
import { releaseStock } from '../../../lambdas/example/inventory/release-stock.ts';
import { reserveStock } from '../../../lambdas/example/inventory/reserve-stock.ts';
import { stockKey, stockRow } from '../../../lambdas/example/inventory/stock.ts';
import { orderIdOf } from '../../../lambdas/example/orders/order.ts';
import { consumerRig } from './consumer-rig.ts';

async function setUp(stock: Record<string, number>) {
  const rig = consumerRig((table) => [reserveStock({ table }), releaseStock({ table })]);
  for (const [sku, available] of Object.entries(stock)) {
    await rig.table.write({ Put: { Item: stockRow(sku, available) } });
  }
  const available = (sku: string) => rig.table.item(stockKey(sku))?.available;
  return { ...rig, available };
}

function placed(lines: [sku: string, quantity: number][], key = 'key') {
  const orderId = orderIdOf(key);
  const items: OrderItem[] = lines.map(([sku, quantity]) => ({ sku, quantity, unitPrice: 100 }));
  return OrderPlaced.create({
    aggregateId: orderId,
    data: { orderId, customerId: 'alice', items, totalCents: 0 },
  });
}

const orderId = orderIdOf('key');

/** The number of transactions that processed messages: the rows of a batch have one fence. */
function transactions({ rows }: Awaited<ReturnType<typeof setUp>>): number {
  return new Set(rows('INBOX#').flatMap(({ fence }) => fence ?? [])).size;
}

describe('inventory', () => {
  it('sets every item aside and announces it', async () => {
    const { announce, deliver, rows, announced, available } = await setUp({ coffee: 5, tea: 1 });
    const event = await announce(
      placed([
        ['coffee', 2],
        ['tea', 1],
      ]),
    );
    expect(await deliver(event)).toBe('done');
    expect([available('coffee'), available('tea')]).toEqual([3, 0]);
    expect(rows('RESERVATION#')).toEqual([
      {
        PK: `RESERVATION#${orderId}`,
        SK: 'RESERVATION',
        schema: 1,
        version: 1,
        orderId,
        status: 'reserved',
        items: [
          { sku: 'coffee', quantity: 2 },
          { sku: 'tea', quantity: 1 },
        ],
      },
    ]);
    expect(announced('StockReserved')).toEqual([
      expect.objectContaining({ aggregateId: orderId, causationId: event.eventId, data: { orderId } }),
    ]);
  });

  it('adds the lines of one SKU up', async () => {
    const { announce, deliver, announced, available } = await setUp({ coffee: 5 });
    expect(
      await deliver(
        await announce(
          placed([
            ['coffee', 2],
            ['coffee', 3],
          ]),
        ),
      ),
    ).toBe('done');
    expect(available('coffee')).toBe(0);
    expect(announced('StockReserved')).toHaveLength(1);
  });

  it('reserves nothing if an item is short, and names it', async () => {
    const { announce, deliver, rows, announced, available } = await setUp({ coffee: 5, tea: 1 });
    expect(
      await deliver(
        await announce(
          placed([
            ['coffee', 2],
            ['tea', 2],
            ['cocoa', 1],
          ]),
        ),
      ),
    ).toBe('done');
    expect([available('coffee'), available('tea'), available('cocoa')]).toEqual([5, 1, undefined]);
    expect(rows('RESERVATION#')).toEqual([
      expect.objectContaining({ status: 'rejected', missingSkus: ['tea', 'cocoa'] }),
    ]);
    expect(announced('StockRejected')).toEqual([
      expect.objectContaining({ data: { orderId, missingSkus: ['tea', 'cocoa'] } }),
    ]);
    expect(announced('StockReserved')).toEqual([]);
  });

  it('counts lines of one SKU together when it looks for what is short', async () => {
    const { announce, deliver, announced, available } = await setUp({ coffee: 4 });
    await deliver(
      await announce(
        placed([
          ['coffee', 2],
          ['coffee', 3],
        ]),
      ),
    );
    expect(available('coffee')).toBe(4);
    expect(announced('StockRejected')).toHaveLength(1);
  });

  it('takes stock once, however often the message comes', async () => {
    const { announce, deliver, announced, available } = await setUp({ coffee: 5 });
    const event = await announce(placed([['coffee', 2]]));
    expect([await deliver(event), await deliver(event)]).toEqual(['done', 'done']);
    expect(available('coffee')).toBe(3);
    expect(announced('StockReserved')).toHaveLength(1);
  });

  it('reserves an order of the most items in one transaction', async () => {
    const skus = Array.from({ length: 50 }, (_, i) => `sku-${i}`);
    const { announce, deliver, rows } = await setUp(Object.fromEntries(skus.map((sku) => [sku, 1])));
    const lines = skus.map((sku): [string, number] => [sku, 1]);
    expect(await deliver(await announce(placed(lines)))).toBe('done');
    expect(rows('STOCK#').every((row) => row.available === 0)).toBe(true);
  });

  it('never sells the last unit twice: the second order is refused', async () => {
    const { announce, deliver, announced, available } = await setUp({ coffee: 1 });
    const events = [
      await announce(placed([['coffee', 1]], 'a')),
      await announce(placed([['coffee', 1]], 'b')),
    ];
    await Promise.all(events.map((event) => deliver(event)));
    for (const event of events) await deliver(event);
    expect(available('coffee')).toBe(0);
    expect(announced('StockReserved')).toHaveLength(1);
    expect(announced('StockRejected')).toHaveLength(1);
  });
});

describe('inventory, with orders that come in one batch', () => {
  const announcedOrders = async (rig: Awaited<ReturnType<typeof setUp>>, ...orders: [string, number][][]) =>
    await Promise.all(orders.map((lines, i) => rig.announce(placed(lines, `order-${i}`))));

  it('takes from the row of a SKU once, and announces each reservation with its own cause', async () => {
    const rig = await setUp({ coffee: 5, tea: 1 });
    const events = await announcedOrders(
      rig,
      [['coffee', 2]],
      [
        ['coffee', 1],
        ['tea', 1],
      ],
    );
    expect(await rig.deliver(...events)).toBe('done');
    expect([rig.available('coffee'), rig.available('tea')]).toEqual([2, 0]);
    expect(transactions(rig)).toBe(1);
    const causes = rig
      .announced('StockReserved')
      .map(({ aggregateId, causationId }) => [aggregateId, causationId]);
    expect(causes.sort()).toEqual(events.map((event) => [event.aggregateId, event.eventId]).sort());
  });

  it('gives the last pieces to the first events, and refuses the last one only', async () => {
    const rig = await setUp({ coffee: 5 });
    const events = await announcedOrders(rig, [['coffee', 2]], [['coffee', 2]], [['coffee', 2]]);
    expect(await rig.deliver(...events)).toBe('done');
    expect(rig.available('coffee')).toBe(1);
    expect(transactions(rig)).toBe(1);
    const [first, second, last] = events.toSorted((a, b) => (a.eventId < b.eventId ? -1 : 1));
    const idsOf = (type: string) =>
      rig
        .announced(type)
        .map(({ aggregateId }) => aggregateId)
        .sort();
    expect(idsOf('StockReserved')).toEqual([first?.aggregateId, second?.aggregateId].sort());
    expect(idsOf('StockRejected')).toEqual([last?.aggregateId]);
  });

  it('reserves orders that together need more than one transaction', async () => {
    const skus = Array.from({ length: 50 }, (_, i) => `sku-${i}`);
    const more = skus.map((sku) => `other-${sku}`);
    const rig = await setUp(Object.fromEntries([...skus, ...more].map((sku) => [sku, 1])));
    const lines = (of: string[]) => of.map((sku): [string, number] => [sku, 1]);
    expect(await rig.deliver(...(await announcedOrders(rig, lines(skus), lines(more))))).toBe('done');
    expect(rig.rows('STOCK#').every((row) => row.available === 0)).toBe(true);
  });
});

describe('inventory, on a declined payment', () => {
  const declined = PaymentDeclined.create({
    aggregateId: orderId,
    sequence: 1,
    data: { orderId, customerId: 'alice', amountCents: 0, reason: 'no money' },
  });
  const order = placed([
    ['coffee', 2],
    ['coffee', 1],
    ['tea', 1],
  ]);

  it('puts every item back, once, and announces it', async () => {
    const { announce, deliver, rows, announced, available } = await setUp({ coffee: 5, tea: 1 });
    await deliver(await announce(order));
    const event = await announce(declined);
    expect([await deliver(event), await deliver(event)]).toEqual(['done', 'done']);
    expect([available('coffee'), available('tea')]).toEqual([5, 1]);
    expect(rows('RESERVATION#')).toEqual([expect.objectContaining({ status: 'released' })]);
    expect(announced('StockReleased')).toEqual([
      expect.objectContaining({ aggregateId: orderId, causationId: event.eventId, data: { orderId } }),
    ]);
  });

  it('before the order comes, sets nothing aside when it does', async () => {
    const { announce, deliver, rows, announced, available } = await setUp({ coffee: 5, tea: 1 });
    expect(await deliver(await announce(declined))).toBe('done');
    expect(await deliver(await announce(order))).toBe('done');
    expect([available('coffee'), available('tea')]).toEqual([5, 1]);
    expect(rows('RESERVATION#')).toEqual([expect.objectContaining({ status: 'released' })]);
    expect(announced('StockReleased')).toHaveLength(1);
    expect(announced('StockReserved')).toEqual([]);
  });

  it('has nothing to put back of an order that it rejected', async () => {
    const { announce, deliver, rows, announced, available } = await setUp({ coffee: 1 });
    await deliver(await announce(order));
    expect(await deliver(await announce(declined))).toBe('done');
    expect(available('coffee')).toBe(1);
    expect(rows('RESERVATION#')).toEqual([expect.objectContaining({ status: 'rejected' })]);
    expect(announced('StockReleased')).toEqual([]);
  });
});
