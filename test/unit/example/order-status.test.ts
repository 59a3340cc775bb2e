import { describe, expect, it } from 'vitest';
import {
  OrderExpired,
  PaymentCancelled,
  PaymentCaptured,
  PaymentDeclined,
  PaymentRefunded,
  PaymentRejected,
  StockRejected,
  StockReleased,
  StockReserved,
} from '../../../lambdas/example/events.ts';
import {
  newOrder,
  type Order,
  orderIdOf,
  orderKey,
  orderOfRow,
  orderRow,
  orderStatus,
} from '../../../lambdas/example/orders/order.ts';
import { orderStatusHandlers } from '../../../lambdas/example/orders/order-status.ts';
import { createOutbox, type EventDraft, entryEventId } from '../../../lambdas/runtime/index.ts';
import { outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import { memoryTable, producerConfig } from '../../../testing/index.ts';
import { consumerRig } from './consumer-rig.ts';

const orderId = orderIdOf('key');
const payment = { orderId, customerId: 'alice', amountCents: 100 };
const captured = PaymentCaptured.create({
  aggregateId: orderId,
  sequence: 1,
  data: { ...payment, chargeId: 'c-1' },
});
const declined = PaymentDeclined.create({
  aggregateId: orderId,
  sequence: 1,
  data: { ...payment, reason: 'no money' },
});
const reserved = StockReserved.create({ aggregateId: orderId, sequence: 1, data: { orderId } });
const refunded = PaymentRefunded.create({
  aggregateId: orderId,
  sequence: 2,
  data: { ...payment, chargeId: 'c-1', refundId: 'r-1' },
});
const notCharged = PaymentCancelled.create({ aggregateId: orderId, sequence: 1, data: { orderId } });
const ended = PaymentRejected.create({
  aggregateId: orderId,
  sequence: 1,
  data: { ...payment, reason: 'unknown' },
});
const endedAfterCharge = PaymentRejected.create({
  aggregateId: orderId,
  sequence: 1,
  data: { ...payment, chargeId: 'c-1', reason: 'unknown' },
});
const expired = PaymentCancelled.create({
  aggregateId: orderId,
  sequence: 1,
  data: { orderId, expired: true },
});
const refundedLate = PaymentRefunded.create({
  aggregateId: orderId,
  sequence: 1,
  data: { ...payment, chargeId: 'c-1', refundId: 'r-1', expired: true },
});
const released = StockReleased.create({ aggregateId: orderId, sequence: 2, data: { orderId } });
const rejected = StockRejected.create({
  aggregateId: orderId,
  sequence: 1,
  data: { orderId, missingSkus: ['coffee'] },
});

const NOW = 1_000_000;

/** @param order - what the order's row has beside a new order */
async function setUp(order: Partial<Order> = {}, now = NOW) {
  const clock = { now: () => now, sleep: async () => {} };
  const table = memoryTable();
  const outbox = createOutbox({ config: producerConfig({ service: 'orders' }), table, clock });
  const handlers = () => orderStatusHandlers({ table, outbox, clock });
  const rig = consumerRig(handlers, table, 'order-status');
  const request = { customerId: 'alice', items: [{ sku: 'coffee', quantity: 1, unitPrice: 100 }] };
  const placed = { ...newOrder('key', request, 1_000), ...order };
  await rig.table.write({ Put: { Item: orderRow(placed) } });
  const status = () => orderStatus(orderOfRow(rig.table.item(orderKey(orderId)) ?? {}));
  return { ...rig, outbox, order: placed, status };
}

describe('order-status', () => {
  it.each<[status: string, events: EventDraft[]]>([
    ['paid', [captured]],
    ['reserved', [reserved]],
    ['confirmed', [captured, reserved]],
    ['confirmed', [reserved, captured]],
    ['cancelling', [declined]],
    ['cancelling', [captured, rejected]],
    ['cancelling', [rejected, captured]],
    ['cancelling', [ended]],
    ['placed', [endedAfterCharge]],
  ])('moves an order on to %s', async (expected, drafts) => {
    const { announce, deliver, status } = await setUp();
    for (const draft of drafts) expect(await deliver(await announce(draft))).toBe('done');
    expect(status()).toBe(expected);
  });

  it.each<[reason: string, refundedCents: number, events: EventDraft[]]>([
    ['out-of-stock', 100, [captured, rejected, refunded]],
    ['out-of-stock', 0, [rejected, notCharged]],
    ['out-of-stock', 0, [rejected, declined]],
    ['payment-declined', 0, [reserved, declined, released]],
    ['payment-failed', 0, [reserved, ended, released]],
    ['payment-failed', 100, [endedAfterCharge, refunded, released]],
    ['not-paid-in-time', 0, [reserved, expired, released]],
    ['not-paid-in-time', 100, [reserved, refundedLate, released]],
    ['out-of-stock', 0, [rejected, expired]],
  ])(
    'ends %s with %i cents refunded, in whatever order the events come',
    async (reason, refundedCents, drafts) => {
      for (const drawn of permutations(drafts)) {
        const { announce, deliver, announced, status } = await setUp();
        for (const draft of drawn) expect(await deliver(await announce(draft))).toBe('done');
        expect(status()).toBe('cancelled');
        expect(announced('OrderCancelled').map(({ data }) => data)).toEqual([
          { orderId, customerId: 'alice', reason, refundedCents },
        ]);
      }
    },
  );

  it('changes nothing else of the order', async () => {
    const { announce, deliver, table, order } = await setUp();
    await deliver(await announce(captured));
    expect(table.item(orderKey(orderId))).toEqual({
      ...orderRow(order),
      payment: 'captured',
      expired: false,
    });
  });

  it('does not run the handler of an event that a later one has superseded', async () => {
    const { announce, deliver, rows, status } = await setUp();
    const [older, newer] = [await announce(reserved), await announce(released)];
    for (const event of [await announce(declined), newer, older]) await deliver(event);
    expect(status()).toBe('cancelled');
    expect(rows(`INBOX#order-status#${older.eventId}`)).toMatchObject([{ supersededBy: 2 }]);
  });

  it('does not create an order that was never placed', async () => {
    const { announce, deliver, rows, table } = await setUp();
    await table.write({ Delete: { Key: { ...orderKey(orderId) } } });
    expect(await deliver(await announce(captured))).toBe('is redelivered');
    expect(rows('ORDER#')).toEqual([]);
  });
});

describe('the expiry of an order', () => {
  const payBy = NOW + 60_000;

  /** An order whose expiry is scheduled. */
  async function withExpiry(now?: number) {
    const rig = await setUp({ payBy }, now);
    const draft = OrderExpired.create({ aggregateId: orderId, deliverAt: payBy, data: { orderId } });
    const [entry] = await createOutbox({
      config: producerConfig({ service: 'orders' }),
      table: rig.table,
      clock: { now: () => NOW, sleep: async () => {} },
    }).entries([draft]);
    if (entry === undefined) throw new Error('The outbox made no entry');
    const expiryId = entryEventId(entry);
    await rig.table.transact([entry, { Put: { Item: orderRow({ ...rig.order, expiryId }) } }]);
    return { ...rig, expiry: () => rig.table.item(outboxKeyOf(expiryId))?.status };
  }

  it.each([captured, declined, ended, notCharged, refundedLate])(
    'is cancelled by the first report of payments ($definition.type)',
    async (draft) => {
      const { announce, deliver, expiry } = await withExpiry();
      expect(await deliver(await announce(draft))).toBe('done');
      expect(expiry()).toBe('CANCELLED');
    },
  );

  it('is not cancelled by a report of inventory', async () => {
    const { announce, deliver, expiry } = await withExpiry();
    await deliver(await announce(reserved));
    expect(expiry()).toBe('PENDING');
  });

  it('is cancelled once', async () => {
    const { announce, deliver, expiry, status } = await withExpiry();
    for (const draft of [captured, rejected, refunded])
      expect(await deliver(await announce(draft))).toBe('done');
    expect([expiry(), status()]).toEqual(['CANCELLED', 'cancelled']);
  });

  it('is left alone once it is due: it may be published', async () => {
    const { announce, deliver, expiry, status } = await withExpiry(payBy);
    expect(await deliver(await announce(captured))).toBe('done');
    expect([expiry(), status()]).toEqual(['PENDING', 'paid']);
  });
});

function permutations<T>(all: readonly T[]): T[][] {
  if (all.length === 0) return [[]];
  return all.flatMap((first, i) => permutations(all.toSpliced(i, 1)).map((rest) => [first, ...rest]));
}
