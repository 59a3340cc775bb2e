import { randomUUID } from 'node:crypto';
import { DeleteCommand } from '@aws-sdk/lib-dynamodb';
import { describe, expect, it, vi } from 'vitest';
import { asDelivered } from '../../../demo/shop.ts';
import { PaymentCaptured } from '../../../lambdas/example/events.ts';
import { orderKey, orderRow } from '../../../lambdas/example/orders/order.ts';
import { isUnreadableId, mintEventId, unreadableId } from '../../../lambdas/runtime/store/event-id.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { envelopeOf } from '../../support/envelope-of.ts';
import { eventually } from '../support/eventually.ts';
import { mailroom } from '../support/mailroom.ts';
import {
  bankRequests,
  charges,
  documents,
  effect,
  get,
  inStock,
  message,
  put,
  rejection,
  settled,
  shownOrder,
  tableName,
} from '../support/order-system.ts';
import { redrive, send, takeDeadLetter, untilEmpty } from '../support/queues.ts';
import { outboxOf, type UnpublishedOrder, unpublishedOrder } from '../support/unpublished-order.ts';

vi.setConfig({ maxConcurrency: 10 });

/** A message that can never succeed: what is sent, and under which id and for which reason it is rejected. */
interface Poison {
  readonly body: string;
  readonly eventId: (messageId: string) => string;
  readonly reason: string;
  readonly lastError: string;
}

function unreadable(body: string, lastError: string): Poison {
  return {
    body,
    eventId: () => unreadableId(body),
    reason: 'UNREADABLE_MESSAGE',
    lastError,
  };
}

/** The event of an order, changed into one that no handler can work on. */
function changed({ envelope }: UnpublishedOrder, change: object, reason: string, lastError: string): Poison {
  const eventId = mintEventId(Date.now(), 8);
  const body = asDelivered('orders', { ...envelope, eventId, ...change });
  return { body, eventId: () => eventId, reason, lastError };
}

function poisonsFrom(order: UnpublishedOrder): Poison[] {
  return [
    unreadable(`this is not JSON: ${randomUUID()}`, "The message's body is not JSON"),
    unreadable(JSON.stringify(randomUUID()), 'it has no detail'),
    unreadable(JSON.stringify({ detail: { eventId: `ORDER-${randomUUID()}` } }), 'eventId is not a UUIDv7'),
    changed(order, { type: 'OrderLost' }, 'UNKNOWN_EVENT_TYPE', 'has no handler for OrderLost'),
    changed(order, { version: 99 }, 'UNKNOWN_EVENT_VERSION', 'OrderPlaced has version 99'),
    changed(
      order,
      { data: { ...(order.envelope.data as object), totalCents: '13.50' } },
      'INVALID_PAYLOAD',
      'data.totalCents',
    ),
  ];
}

describe.concurrent.each(['payments', 'inventory'] as const)('what %s cannot read', (consumer) => {
  it('an unreadable message is rejected with its reason and becomes a dead letter; its neighbors are processed', async () => {
    const [before, between, after] = await Promise.all([
      unpublishedOrder(),
      unpublishedOrder(),
      unpublishedOrder(),
    ]);
    const neighbors = [before, between, after];
    const poisons = poisonsFrom(before);
    const bodyOf = ({ envelope }: UnpublishedOrder) => asDelivered('orders', envelope);
    const bodies = [
      bodyOf(before),
      ...poisons.slice(0, 3).map(({ body }) => body),
      bodyOf(between),
      ...poisons.slice(3).map(({ body }) => body),
      bodyOf(after),
    ];
    const sent = await send(consumer, bodies);

    for (const { envelope } of neighbors) {
      await eventually(async () => {
        expect(await message(consumer, envelope.eventId)).toMatchObject({ status: 'PROCESSED' });
      });
    }
    for (const { body, eventId, reason, lastError } of poisons) {
      const messageId = sent[bodies.indexOf(body)] ?? '';
      expect(await takeDeadLetter(consumer, messageId)).toBe(body);

      const cause = {
        reason,
        lastError: expect.stringContaining(lastError),
        fingerprint: expect.stringMatching(`^${consumer} ${reason}: `),
        rejectedAt: expect.any(Number),
      };
      const row = await message(consumer, eventId(messageId));
      expect(row).toMatchObject({ status: 'REJECTED', rejectedIds: new Set([messageId]), ...cause });
      const pointer = await rejection(consumer, eventId(messageId));
      expect(pointer).toMatchObject(cause);
      // Only what was rejected under the digest of its body may expire: an event of its own has to be settled.
      const mayExpire = isUnreadableId(eventId(messageId));
      expect([row, pointer].map((item) => item !== undefined && 'expiresAt' in item)).toEqual([
        mayExpire,
        mayExpire,
      ]);
    }
    for (const { order, sku } of neighbors) {
      expect(await charges(order.orderId)).toHaveLength(consumer === 'payments' ? 1 : 0);
      expect(await inStock(sku)).toBe(consumer === 'inventory' ? 7 : 10);
    }
  });
});

describe.concurrent('a message that was rejected', () => {
  it('a message that is redriven unchanged is rejected again, under both of its ids', async () => {
    const order = await unpublishedOrder();
    const poison = changed(order, { version: 2 }, 'UNKNOWN_EVENT_VERSION', 'version 2');
    const eventId = poison.eventId('');
    const [first = ''] = await send('payments', [poison.body]);
    const second = await redrive('payments', first);

    await takeDeadLetter('payments', second);
    expect(await message('payments', eventId)).toMatchObject({
      status: 'REJECTED',
      reason: 'UNKNOWN_EVENT_VERSION',
      rejectedIds: new Set([first, second]),
    });
    expect(await rejection('payments', eventId)).toMatchObject({ reason: 'UNKNOWN_EVENT_VERSION' });
    expect(await charges(order.order.orderId)).toEqual([]);
  });

  it('a message whose attempts are exhausted is processed when it is redriven after the bank has recovered', async () => {
    const { order, envelope } = await unpublishedOrder('fail-5');
    const { orderId } = order;
    const { eventId } = envelope;
    await send('inventory', [asDelivered('orders', envelope)]);
    const [first = ''] = await send('payments', [asDelivered('orders', envelope)]);

    await eventually(async () => {
      expect(await message('payments', eventId)).toMatchObject({
        status: 'REJECTED',
        reason: 'ATTEMPTS_EXHAUSTED',
        attempts: 5,
        lastError: expect.stringContaining('The bank answered 500'),
      });
    });
    expect(await rejection('payments', eventId)).toMatchObject({ reason: 'ATTEMPTS_EXHAUSTED' });
    expect(await bankRequests(orderId)).toHaveLength(5);
    expect(await charges(orderId)).toEqual([]);
    const released = await effect('payments', eventId, 'charge');
    expect(released).toMatchObject({ status: 'RELEASED' });
    // The bank may have charged in each of the five attempts.
    const resolving = ['messages', 'resolve', 'payments', eventId];
    const doubt =
      /charge ended at .* with an error .*, so it may have happened; its idempotency key is payments:.*:charge/;
    expect(unwrapped((await mailroom(...resolving)).out)).toMatch(doubt);
    expect(unwrapped((await mailroom('why', eventId)).out)).toMatch(doubt);
    expect(await mailroom(...resolving, '--apply', '--reason', 'charged by phone')).toMatchObject({
      code: 2,
      err: expect.stringContaining('EFFECTS_UNCHECKED'),
    });
    const { pastAttempts } = (await message('payments', eventId)) ?? {};
    expect(pastAttempts).toMatchObject(Array(5).fill({ effects: { charge: 'failed' } }));
    expect(await message('payments', eventId)).not.toHaveProperty('expiresAt');

    await redrive('payments', first);
    await settled(orderId);
    const row = await message('payments', eventId);
    expect(row).toMatchObject({ status: 'PROCESSED', attempts: 1, rejectedIds: new Set([first]) });
    expect(row).not.toHaveProperty('reason');
    expect(await rejection('payments', eventId)).toBeUndefined();
    const requests = await bankRequests(orderId);
    expect(requests.map(({ outcome }) => outcome).slice(4)).toEqual(['failed', 'charged']);
    expect(new Set(requests.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
    expect(await charges(orderId)).toHaveLength(1);
    expect(await shownOrder(orderId)).toMatchObject({ status: 'confirmed' });
  });

  it('a message rejected by a transactional handler is processed when it is redriven after the cause is fixed', async () => {
    const { order } = await unpublishedOrder();
    const { orderId, customerId } = order;
    await documents.send(new DeleteCommand({ TableName: tableName, Key: { ...orderKey(orderId) } }));
    const [entry] = await outboxOf('payments').entries([
      PaymentCaptured.create({
        aggregateId: orderId,
        sequence: 1,
        data: { orderId, customerId, amountCents: 1_350, chargeId: randomUUID() },
      }),
    ]);
    const envelope = envelopeOf(entry?.Put.Item);
    const [first = ''] = await send('order-status', [asDelivered('payments', envelope)]);

    await eventually(async () => {
      expect(await message('order-status', envelope.eventId)).toMatchObject({
        status: 'REJECTED',
        reason: 'ATTEMPTS_EXHAUSTED',
      });
    });
    expect(await get(orderKey(orderId))).toBeUndefined();

    await put(orderRow(order));
    await redrive('order-status', first);
    await eventually(async () => {
      expect(await get(orderKey(orderId))).toMatchObject({ payment: 'captured' });
    });
    expect(await message('order-status', envelope.eventId)).toMatchObject({
      status: 'PROCESSED',
      rejectedIds: new Set([first]),
    });
    expect(await rejection('order-status', envelope.eventId)).toBeUndefined();
  });
});

it.each(['payments', 'inventory', 'order-status'] as const)(
  'the queue of %s has nothing left in it afterwards',
  async (consumer) => {
    await untilEmpty(consumer);
  },
);
