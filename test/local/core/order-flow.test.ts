import { describe, expect, it, vi } from 'vitest';
import { CONSUMERS_OF } from '../../../demo/readings.ts';
import {
  bankRequests,
  charges,
  effect,
  emails,
  get,
  inStock,
  message,
  only,
  placeOrder,
  refunds,
  rejection,
  settled,
  shownOrder,
} from '../support/order-system.ts';

vi.setConfig({ maxConcurrency: 10 });

describe.concurrent('an order placed through the API', () => {
  it('an order is charged, reserved and confirmed once, and its customer gets one email', async () => {
    const { orderId, sku } = await placeOrder();
    const { events, expiry } = await settled(orderId);

    expect(expiry).toMatchObject({ type: 'OrderExpired', status: 'CANCELLED', cancelledBy: 'orders' });
    expect(await shownOrder(orderId)).toMatchObject({
      orderId,
      status: 'confirmed',
      payment: 'captured',
      stock: 'reserved',
      totalCents: 1_350,
    });
    const [charge, ...more] = await charges(orderId);
    expect(charge).toMatchObject({ orderId, amountCents: 1_350 });
    expect(more).toEqual([]);
    expect((await bankRequests(orderId))[0]).toMatchObject({ outcome: 'charged' });
    expect(await get({ PK: `PAYMENT#${orderId}`, SK: 'PAYMENT' })).toMatchObject({
      status: 'captured',
      chargeId: charge?.chargeId,
    });
    expect(await get({ PK: `RESERVATION#${orderId}`, SK: 'RESERVATION' })).toMatchObject({
      status: 'reserved',
      items: [{ sku, quantity: 3 }],
    });
    expect(await inStock(sku)).toBe(7);
    expect(await emails(orderId)).toMatchObject([{ reference: orderId }]);
    expect(events.map(({ envelope }) => envelope.type).sort()).toEqual([
      'OrderPlaced',
      'PaymentCaptured',
      'StockReserved',
    ]);
  });

  it('leaves every row in its last state, which alone may expire', async () => {
    const { orderId } = await placeOrder();
    const { events } = await settled(orderId);
    const nowS = Date.now() / 1_000;

    for (const { row } of events) {
      expect(row).toMatchObject({
        status: 'PUBLISHED',
        attempts: 0,
        publishedAt: expect.any(Number),
        publishedBy: expect.stringMatching(/^(stream|sweep)$/),
      });
      expect(row.expiresAt).toBeGreaterThan(nowS);
    }
    const seen = new Set<string>();
    for (const { envelope } of events) {
      for (const consumer of CONSUMERS_OF[envelope.type] ?? []) {
        seen.add(consumer);
        const row = await message(consumer, envelope.eventId);
        expect(row).toMatchObject({
          status: 'PROCESSED',
          type: envelope.type,
          expiresAt: expect.toSatisfy((at: number) => at > nowS),
        });
        expect(row).not.toHaveProperty('leaseUntil');
      }
    }
    expect([...seen].sort()).toEqual(['inventory', 'notifications', 'order-status', 'payments']);

    const { eventId: placedId } = only(events, 'OrderPlaced').envelope;
    const { eventId: capturedId } = only(events, 'PaymentCaptured').envelope;
    for (const stored of [
      await effect('payments', placedId, 'charge'),
      await effect('notifications', capturedId, 'email'),
    ])
      expect(stored).toMatchObject({ status: 'COMPLETED', result: expect.any(String) });
  });

  it("every event of an order has the order's correlation id", async () => {
    const { orderId } = await placeOrder();
    const { events } = await settled(orderId);

    const { envelope: placed } = only(events, 'OrderPlaced');
    expect(placed).not.toHaveProperty('causationId');
    expect(placed.correlationId).toBe(placed.eventId);
    for (const type of ['PaymentCaptured', 'StockReserved']) {
      expect(only(events, type).envelope).toMatchObject({
        causationId: placed.eventId,
        correlationId: placed.eventId,
      });
    }
  });

  it('a bank that fails twice charges an order once, under one key, and the row counts the attempts', async () => {
    const { orderId } = await placeOrder({ customerId: 'fail-2' });
    const { events } = await settled(orderId);

    const requests = await bankRequests(orderId);
    expect(requests.map(({ outcome }) => outcome).slice(0, 3)).toEqual(['failed', 'failed', 'charged']);
    expect(new Set(requests.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
    expect(await charges(orderId)).toHaveLength(1);
    const { eventId } = only(events, 'OrderPlaced').envelope;
    expect(await message('payments', eventId)).toMatchObject({ status: 'PROCESSED', attempts: 3 });
    expect(await shownOrder(orderId)).toMatchObject({ status: 'confirmed' });
  });

  it('a slow bank charges an order once', async () => {
    const { orderId } = await placeOrder({ customerId: 'slow-1500' });
    await settled(orderId);

    const keys = (await bankRequests(orderId)).map(({ idempotencyKey }) => idempotencyKey);
    expect(new Set(keys).size).toBe(1);
    expect(await charges(orderId)).toHaveLength(1);
    expect(await shownOrder(orderId)).toMatchObject({ status: 'confirmed' });
  });

  it('an order whose charge is declined is cancelled, and its stock is released', async () => {
    const { orderId, sku } = await placeOrder({ customerId: 'decline' });
    const { events } = await settled(orderId);

    expect(await shownOrder(orderId)).toMatchObject({
      status: 'cancelled',
      payment: 'declined',
      stock: 'released',
    });
    expect((await bankRequests(orderId))[0]).toMatchObject({ outcome: 'declined' });
    expect(await charges(orderId)).toEqual([]);
    expect(await inStock(sku)).toBe(10);
    expect(await emails(orderId)).toMatchObject([{ text: expect.stringContaining('not been charged') }]);
    expect(only(events, 'PaymentDeclined').envelope.data).toMatchObject({
      reason: expect.stringContaining('may not be charged'),
    });
    const { eventId } = only(events, 'OrderPlaced').envelope;
    expect(await message('payments', eventId)).toMatchObject({ status: 'PROCESSED' });
    expect(await rejection('payments', eventId)).toBeUndefined();
  });

  it('an order without enough stock is cancelled, and its charge is refunded', async () => {
    const { orderId, sku } = await placeOrder({ inStock: 2 });
    const { events } = await settled(orderId);

    const shown = await shownOrder(orderId);
    expect(shown).toMatchObject({ status: 'cancelled', stock: 'rejected' });
    expect(['refunded', 'cancelled']).toContain(shown.payment);
    expect(only(events, 'StockRejected').envelope.data).toEqual({ orderId, missingSkus: [sku] });
    expect(await inStock(sku)).toBe(2);

    // The charge and the refusal are made at the same time. Whichever was first, no money is kept.
    const charged = await charges(orderId);
    expect(charged).toHaveLength(shown.payment === 'refunded' ? 1 : 0);
    expect(await refunds(orderId)).toMatchObject(
      charged.map(({ chargeId, amountCents }) => ({ chargeId, amountCents })),
    );
    expect(only(events, 'OrderCancelled').envelope.data).toMatchObject({
      reason: 'out-of-stock',
      refundedCents: charged.length * 1_350,
    });
  });

  it('an order that is not paid in time is cancelled, its stock is released, and nothing is charged', async () => {
    const { orderId, sku } = await placeOrder({ customerId: 'late', payWithinSeconds: 2 });
    const { events, expiry } = await settled(orderId);

    expect(expiry).toMatchObject({ status: 'PUBLISHED' });
    expect(await shownOrder(orderId)).toMatchObject({
      status: 'cancelled',
      payment: 'cancelled',
      stock: 'released',
    });
    expect(only(events, 'PaymentCancelled').envelope).toMatchObject({ sequence: 1, data: { expired: true } });
    expect(only(events, 'OrderCancelled').envelope.data).toMatchObject({ reason: 'not-paid-in-time' });
    expect(await charges(orderId)).toEqual([]);
    expect(await inStock(sku)).toBe(10);
  });

  it('an order that is charged after its stock was refused is refunded under its own key', async () => {
    const { orderId } = await placeOrder({ customerId: 'slow-1500', inStock: 2 });
    await settled(orderId);

    const requests = await bankRequests(orderId);
    const keys = new Map(requests.map(({ operation, idempotencyKey }) => [operation, idempotencyKey]));
    expect(new Set(keys.values()).size).toBe(keys.size);
    expect(await refunds(orderId)).toHaveLength((await charges(orderId)).length);
    expect(await shownOrder(orderId)).toMatchObject({ status: 'cancelled' });
  });
});
