import { describe, expect, it } from 'vitest';
import { orderIdOf, orderKey } from '../../../lambdas/example/orders/order.ts';
import { envelopeOf } from '../../support/envelope-of.ts';
import {
  context,
  moveOn,
  NOW,
  order,
  PAY_WITHIN_SECONDS,
  parsed,
  post,
  request,
  setUp,
  withStillClock,
} from './orders-api-rig.ts';

withStillClock();

describe('placing an order', () => {
  it('answers 201 with the order, and where it is', async () => {
    const { api } = setUp();
    const response = await api(post(), context());
    const orderId = orderIdOf('key-1');
    expect(response).toMatchObject({ statusCode: 201, headers: { location: `/orders/${orderId}` } });
    expect(parsed(response)).toEqual({
      orderId,
      ...order,
      totalCents: 2_500,
      status: 'placed',
      payment: 'pending',
      stock: 'pending',
      placedAt: NOW,
      payBy: NOW + PAY_WITHIN_SECONDS * 1_000,
    });
  });

  it.each([
    [PAY_WITHIN_SECONDS, {}],
    [60, { payWithinSeconds: 60 }],
  ])('schedules its expiry in %i seconds, and stores its id in the order', async (seconds, part) => {
    const { api, rows } = setUp();
    const response = await api(post({ ...order, ...part }), context());
    const [stored] = rows('ORDER#');
    const [placed] = rows('OUTBOX#').filter(({ type }) => type === 'OrderPlaced');
    const [expiry] = rows('OUTBOX#').filter(({ type }) => type === 'OrderExpired');
    const payBy = NOW + seconds * 1_000;
    expect(parsed(response)).toMatchObject({ payBy });
    expect(stored).toMatchObject({ payBy, expiryId: envelopeOf(expiry ?? {}).eventId });
    expect(expiry).toMatchObject({ status: 'PENDING', dueAt: payBy, leaseUntil: payBy });
    expect(envelopeOf(expiry ?? {}).correlationId).toBe(envelopeOf(placed ?? {}).eventId);
  });

  it('writes the order and OrderPlaced, both once', async () => {
    const { api, rows } = setUp();
    await api(post(), context());
    const orderId = orderIdOf('key-1');
    expect(rows('ORDER#')).toEqual([
      expect.objectContaining({ ...orderKey(orderId), schema: 1, totalCents: 2_500, payment: 'pending' }),
    ]);
    const events = rows('OUTBOX#').map((row) => envelopeOf(row));
    const [event, ...more] = events.filter(({ type }) => type === 'OrderPlaced');
    expect(more).toEqual([]);
    expect(event).toMatchObject({
      type: 'OrderPlaced',
      aggregateId: orderId,
      occurredAt: NOW,
      data: { orderId, ...order, totalCents: 2_500 },
    });
  });

  it('reads a body that the function URL passed on in base64', async () => {
    const { api } = setUp();
    const { body, ...rest } = post();
    const encoded = { ...rest, body: Buffer.from(body ?? '').toString('base64'), isBase64Encoded: true };
    expect(await api(encoded, context())).toMatchObject({ statusCode: 201 });
  });

  it('accepts the maximum number of items, in one transaction', async () => {
    const { api } = setUp();
    const items = Array.from({ length: 50 }, (_, i) => ({
      sku: `${i}`.padStart(100, 'é'),
      quantity: 10_000,
      unitPrice: 100_000_000,
    }));
    const response = await api(post({ customerId: 'c'.repeat(100), items }), context());
    expect(response.statusCode).toBe(201);
    expect(parsed(response).totalCents).toBe(50 * 10_000 * 100_000_000);
  });

  it('answers 500 and only logs the reason when the commit fails; the same key may then be used again', async () => {
    const { api, apiWith, errors } = setUp();
    const failing = apiWith({ commit: () => Promise.reject(new Error('table on fire')) });
    const response = await failing(post(), context());
    expect(response.statusCode).toBe(500);
    expect(response.body).not.toContain('fire');
    expect(errors.map((error) => error.message)).toEqual(['table on fire']);
    expect(await api(post(), context())).toMatchObject({ statusCode: 201 });
  });
});

describe('looking at an order', () => {
  const path = `/orders/${orderIdOf('key-1')}`;

  it('shows it as it is now', async () => {
    const { api, table } = setUp();
    await api(post(), context());
    await moveOn(table, 'payment', 'captured');
    const response = await api(request('GET', path), context());
    expect(response.statusCode).toBe(200);
    expect(parsed(response)).toMatchObject({ status: 'paid', payment: 'captured', stock: 'pending' });
    expect(parsed(response)).not.toHaveProperty('requestHash');
  });

  it('answers 404 if it was never placed', async () => {
    const { api } = setUp();
    const response = await api(request('GET', path), context());
    expect(response.statusCode).toBe(404);
    expect(parsed(response).error.code).toBe('NO_SUCH_ORDER');
  });

  it.each(['42', 'ORDER', orderIdOf('x').toUpperCase(), `${orderIdOf('x')}0`])(
    'answers 400 for the id %s',
    async (id) => {
      const { api } = setUp();
      const response = await api(request('GET', `/orders/${id}`), context());
      expect(response.statusCode).toBe(400);
      expect(parsed(response).error).toMatchObject({ code: 'INVALID_REQUEST', field: 'orderId' });
    },
  );
});

describe('the request key in the table', () => {
  it('has one partition per key, and expires', async () => {
    const { api, rows } = setUp();
    await api(post(order, 'key-1'), context());
    await api(post(order, 'key-2'), context());
    const requests = rows('REQUEST#');
    expect(requests.map((row) => row.PK).sort()).toEqual(['REQUEST#key-1', 'REQUEST#key-2']);
    for (const row of requests) {
      expect(row.SK).toMatch(/^orders#/);
      expect(row.expiresAt).toBe(NOW / 1_000 + 86_400);
    }
  });
});
