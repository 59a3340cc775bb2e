import { describe, expect, it } from 'vitest';
import {
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
  orderIdOf,
  orderKey,
  orderOfRow,
  orderRow,
  orderStatus,
} from '../../../lambdas/example/orders/order.ts';
import { orderStatusHandlers } from '../../../lambdas/example/orders/order-status.ts';
import type { EventDraft } from '../../../lambdas/runtime/index.ts';
import { consumerRig } from './consumer-rig.ts';

const orderId = orderIdOf('key');
const payment = { orderId, customerId: 'alice', amountCents: 100 };
const captured = PaymentCaptured.create({ aggregateId: orderId, data: { ...payment, chargeId: 'c-1' } });
const declined = PaymentDeclined.create({ aggregateId: orderId, data: { ...payment, reason: 'no money' } });
const reserved = StockReserved.create({ aggregateId: orderId, data: { orderId } });
const refunded = PaymentRefunded.create({
  aggregateId: orderId,
  data: { ...payment, chargeId: 'c-1', refundId: 'r-1' },
});
const notCharged = PaymentCancelled.create({ aggregateId: orderId, data: { orderId } });
const ended = PaymentRejected.create({ aggregateId: orderId, data: { ...payment, reason: 'unknown' } });
const endedAfterCharge = PaymentRejected.create({
  aggregateId: orderId,
  data: { ...payment, chargeId: 'c-1', reason: 'unknown' },
});
const released = StockReleased.create({ aggregateId: orderId, data: { orderId } });
const rejected = StockRejected.create({ aggregateId: orderId, data: { orderId, missingSkus: ['coffee'] } });

async function setUp() {
  const rig = consumerRig((table) => orderStatusHandlers({ table }));
  const request = { customerId: 'alice', items: [{ sku: 'coffee', quantity: 1, unitPrice: 100 }] };
  const order = newOrder('key', request, 1_000);
  await rig.table.write({ Put: { Item: orderRow(order) } });
  const status = () => orderStatus(orderOfRow(rig.table.item(orderKey(orderId)) ?? {}));
  return { ...rig, order, status };
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
    expect(table.item(orderKey(orderId))).toEqual({ ...orderRow(order), payment: 'captured' });
  });

  it('does not create an order that was never placed', async () => {
    const { announce, deliver, rows, table } = await setUp();
    await table.write({ Delete: { Key: { ...orderKey(orderId) } } });
    expect(await deliver(await announce(captured))).toBe('is redelivered');
    expect(rows('ORDER#')).toEqual([]);
  });
});

function permutations<T>(all: readonly T[]): T[][] {
  if (all.length === 0) return [[]];
  return all.flatMap((first, i) => permutations(all.toSpliced(i, 1)).map((rest) => [first, ...rest]));
}
