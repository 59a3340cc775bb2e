import { randomUUID } from 'node:crypto';
import { UpdateCommand } from '@aws-sdk/lib-dynamodb';
import { describe, expect, it, vi } from 'vitest';
import * as z from 'zod/mini';
import { asDelivered } from '../../../demo/shop.ts';
import { defineEvent, type Envelope } from '../../../lambdas/runtime/index.ts';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import { SCHEMA } from '../../../lambdas/runtime/store/row-schema.ts';
import type { StoredOutboxRow } from '../../../lambdas/runtime/store/stored-envelope.ts';
import { envelopeOf } from '../../support/envelope-of.ts';
import { listenTo } from '../support/bus-listener.ts';
import { eventually } from '../support/eventually.ts';
import {
  bankRequests,
  charges,
  documents,
  emails,
  eventsWith,
  get,
  inStock,
  message,
  only,
  put,
  settled,
  shownOrder,
  tableName,
} from '../support/order-system.ts';
import { deadLetters, send, takeDeadLetter, untilEmpty } from '../support/queues.ts';
import { outboxOf, type UnpublishedOrder, unpublishedOrder } from '../support/unpublished-order.ts';

// The order system's own pauses (a lease, a sweep) are waited for side by side.
vi.setConfig({ maxConcurrency: 10 });

/** The longest lease with which it is tried, milliseconds: no first receive takes as long. */
const LEASE_MAX_MS = 240_000;

/** An event that no consumer of the order system handles. Its source is one that the deployed relay publishes. */
const ParcelWeighed = defineEvent({
  source: 'orders',
  type: 'ParcelWeighed',
  version: 1,
  aggregateType: 'Parcel',
  schema: z.object({ run: z.string(), grams: z.int(), label: z.string() }),
});

/** Writes an outbox row past the stream, which hands on new rows only that are PENDING: the sweep alone can publish it. */
async function putPastTheStream(row: StoredOutboxRow): Promise<void> {
  await put({ ...row, status: 'PUBLISHED' });
  await documents.send(
    new UpdateCommand({
      TableName: tableName,
      Key: { PK: row.PK, SK: row.SK },
      UpdateExpression: 'SET #status = :status, leaseUntil = :leaseUntil',
      ExpressionAttributeNames: { '#status': 'status' },
      ExpressionAttributeValues: { ':status': 'PENDING', ':leaseUntil': Date.now() - 10_000 },
    }),
  );
}

// An event that EventBridge refuses ends DEAD. That is a unit test: MiniStack 1.5.33 takes every entry.
describe.concurrent('an event that is committed', () => {
  it('the relay publishes each of a hundred events once, also those that the stream missed, and no other event', async () => {
    const run = randomUUID();
    const listener = await listenTo(ParcelWeighed);
    try {
      const outbox = outboxOf(ParcelWeighed.source);
      // Every second one is stored compressed.
      const weighed = (grams: number) =>
        ParcelWeighed.create({
          aggregateId: run,
          data: { run, grams, label: grams % 2 === 0 ? '' : 'Schönefelder Straße 7 – 柏林 😀. '.repeat(60) },
        });
      const [missed, ...committed] = await Promise.all([
        outbox.entries(Array.from({ length: 20 }, (_, n) => weighed(n))),
        outbox.commit({ events: Array.from({ length: 40 }, (_, n) => weighed(100 + n)) }),
        ...Array.from({ length: 40 }, (_, n) => outbox.commit({ events: [weighed(200 + n)] })),
      ]);
      await Promise.all(missed.map(({ Put }) => putPastTheStream(Put.Item)));

      const rows = await eventually(async () => {
        const found: (StoredOutboxRow & object)[] = (await eventsWith(run)).map(({ row }) => row);
        expect(found).toHaveLength(100);
        expect(found.filter(({ encoding }) => encoding === 'deflate-raw')).toHaveLength(50);
        for (const row of found) expect(row).toMatchObject({ status: 'PUBLISHED', attempts: 0 });
        return found;
      });
      // What a slow bus took and did not answer in time is published again, under the same id.
      const byId = (envelopes: readonly Envelope[]) =>
        new Map(envelopes.map((envelope) => [envelope.eventId, envelope]));
      const written = [...missed.map(({ Put }) => envelopeOf(Put.Item)), ...committed.flat()];
      await eventually(async () => expect(byId(await listener.heard()).size).toBeGreaterThanOrEqual(100));
      expect(byId(await listener.heard())).toEqual(byId(written));

      const missedKeys = new Set(missed.map(({ Put }) => Put.Item.SK));
      for (const row of rows.filter(({ SK }) => missedKeys.has(SK))) {
        expect(row).toMatchObject({ publishedBy: 'sweep', expiresAt: expect.any(Number) });
      }
    } finally {
      await listener.remove();
    }
  });

  it('the sweep publishes an event that the stream missed', async () => {
    const { order, row } = await unpublishedOrder();
    await putPastTheStream(row);

    const { events } = await settled(order.orderId);
    expect(events.map(({ envelope }) => envelope.type)).toContain('OrderPlaced');
    expect(events.find(({ envelope }) => envelope.type === 'OrderPlaced')?.row).toMatchObject({
      status: 'PUBLISHED',
      publishedBy: 'sweep',
    });
    expect(await shownOrder(order.orderId)).toMatchObject({ status: 'confirmed' });
    expect(await charges(order.orderId)).toHaveLength(1);
  });

  it('consumers absorb an event that is published twice because its mark was lost', async () => {
    const { order, row, envelope, sku } = await unpublishedOrder();
    await Promise.all(
      (['payments', 'inventory'] as const).map((consumer) =>
        send(consumer, [asDelivered('orders', envelope)]),
      ),
    );
    // Published, says the world; PENDING, says the row, whose publisher died before it could mark it.
    await settled(order.orderId);
    await putPastTheStream(row);

    const { events } = await settled(order.orderId);
    for (const consumer of ['payments', 'inventory'] as const) {
      await untilEmpty(consumer);
    }
    expect(events.map(({ envelope: { type } }) => type).sort()).toEqual([
      'OrderPlaced',
      'PaymentCaptured',
      'StockReserved',
    ]);
    expect(await eventsWith(order.orderId)).toHaveLength(events.length);
    expect(await charges(order.orderId)).toHaveLength(1);
    expect(await inStock(sku)).toBe(7);
  });
});

/** Messages about one event, each under its own SQS and EventBridge id. */
function copies({ envelope }: UnpublishedOrder, count: number): string[] {
  return Array.from({ length: count }, () => asDelivered('orders', envelope));
}

/** That nothing was done twice for an order, and nothing is lacking. */
async function expectDoneOnce({ order, sku }: UnpublishedOrder): Promise<void> {
  const { orderId } = order;
  const { events } = await settled(orderId);
  expect(events.map(({ envelope }) => envelope.type).sort()).toEqual(['PaymentCaptured', 'StockReserved']);
  expect(await charges(orderId)).toHaveLength(1);
  const keys = (await bankRequests(orderId)).map(({ idempotencyKey }) => idempotencyKey);
  expect(new Set(keys).size).toBe(1);
  expect(await emails(orderId)).toHaveLength(1);
  expect(await inStock(sku)).toBe(7);
  expect(await get({ PK: `RESERVATION#${orderId}`, SK: 'RESERVATION' })).toMatchObject({
    status: 'reserved',
  });
}

describe.concurrent('a message that is delivered five times at once', () => {
  it.each([
    ['while the bank answers at once', undefined],
    ['while the bank takes a second and a half', 'slow-1500'],
  ])('payments charges once and inventory takes the stock once, %s', async (_, customerId) => {
    const order = await unpublishedOrder(customerId);
    // Each by a call of its own, so that the functions get some of them together and others side by side.
    const ids = await Promise.all(
      copies(order, 5).flatMap((copy) => [send('payments', [copy]), send('inventory', [copy])]),
    );

    await expectDoneOnce(order);
    for (const consumer of ['payments', 'inventory'] as const) {
      expect(await message(consumer, order.envelope.eventId)).toMatchObject({ status: 'PROCESSED' });
      // The copies that found it leased wait for the rest of that lease.
      await untilEmpty(consumer);
      expect((await deadLetters(consumer)).filter((id) => ids.flat().includes(id))).toEqual([]);
    }
    await expectDoneOnce(order);
  });

  it('five copies of a later event send one e-mail and change the order once', async () => {
    const order = await unpublishedOrder();
    await Promise.all([send('payments', copies(order, 1)), send('inventory', copies(order, 1))]);
    const { events } = await settled(order.order.orderId);
    const { envelope } = only(events, 'PaymentCaptured');
    const again = Array.from({ length: 5 }, () => asDelivered('payments', envelope));
    await Promise.all([send('notifications', again), send('order-status', again)]);

    for (const consumer of ['notifications', 'order-status'] as const) {
      await untilEmpty(consumer);
      expect(await message(consumer, envelope.eventId)).toMatchObject({ status: 'PROCESSED' });
    }
    await expectDoneOnce(order);
  });
});

describe.concurrent('a message whose worker died', () => {
  it('a message is not run while its lease lasts, and is then processed once', async () => {
    const order = await unpublishedOrder();
    const { eventId } = order.envelope;
    const claimedAt = Date.now();
    const leaseUntil = claimedAt + 6_000;
    await put({
      ...inboxKey('payments', eventId),
      schema: SCHEMA,
      status: 'PROCESSING',
      fence: 'of-a-worker-that-died',
      leaseUntil,
      endsBy: leaseUntil,
      attempts: 1,
      type: 'OrderPlaced',
      claimedAt,
    });
    const ids = await Promise.all([send('payments', copies(order, 1)), send('inventory', copies(order, 1))]);

    await expectDoneOnce(order);
    const row = await message('payments', eventId);
    // A claim that ended without a result is not counted.
    expect(row).toMatchObject({ status: 'PROCESSED', attempts: 1 });
    expect(row?.fence).not.toBe('of-a-worker-that-died');
    expect(row).toMatchObject({ processedAt: expect.toSatisfy((at: number) => at > leaseUntil) });
    const [request] = await bankRequests(order.order.orderId);
    expect(request?.receivedAt).toBeGreaterThan(leaseUntil);
    expect((await deadLetters('payments')).filter((id) => ids.flat().includes(id))).toEqual([]);
  });

  // The first receive must find the lease held, and the next one take over. An engine that is too slow for that hands the
  // message out after the lease, where its attempts count from 1 again: then it is tried with a longer lease.
  it('a consumer rejects a message whose attempts are exhausted', async () => {
    let rejected = false;
    for (let leaseMs = 15_000; !rejected && leaseMs <= LEASE_MAX_MS; leaseMs *= 4) {
      const order = await unpublishedOrder();
      const { eventId } = order.envelope;
      const leaseUntil = Date.now() + leaseMs;
      await put({
        ...inboxKey('payments', eventId),
        schema: SCHEMA,
        status: 'PROCESSING',
        fence: 'of-a-worker-that-died',
        leaseUntil,
        endsBy: leaseUntil,
        attempts: 5,
        unfinished: 6, // it ran alone, and so its end counts
        type: 'OrderPlaced',
        claimedAt: leaseUntil - 30_000,
      });
      const [id = ''] = await send('payments', copies(order, 1));

      const row = await eventually(async () => {
        const found = await message('payments', eventId);
        expect(['REJECTED', 'PROCESSED']).toContain(found?.status);
        return found;
      }, leaseMs);
      rejected = row?.status === 'REJECTED';
      if (!rejected) continue;
      expect(row).toMatchObject({ reason: 'ATTEMPTS_EXHAUSTED' });
      await takeDeadLetter('payments', id);
      expect(await bankRequests(order.order.orderId)).toEqual([]);
    }
    expect(rejected).toBe(true);
  });
});
