import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { Context } from 'aws-lambda';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createMeteredAws } from '../../../bench/aws/metered-aws.ts';
import { createOrdersApi } from '../../../lambdas/example/orders/api.ts';
import { BODY_BYTES_MAX, type HttpRequest } from '../../../lambdas/example/orders/http.ts';
import { createOncePerKey, requestRecords } from '../../../lambdas/example/orders/once-per-key.ts';
import { orderIdOf, orderKey } from '../../../lambdas/example/orders/order.ts';
import { createPlaceOrder } from '../../../lambdas/example/orders/place-order.ts';
import {
  createOutbox,
  dynamoTable,
  type Envelope,
  type Outbox,
  systemClock,
  type Table,
} from '../../../lambdas/runtime/index.ts';

const NOW = Date.parse('2026-11-21T10:00:00Z');
const FUNCTION_TIMEOUT_MS = 10_000;
const order = { customerId: 'alice', items: [{ sku: 'coffee', quantity: 2, unitPrice: 1_250 }] };

beforeEach(() => {
  vi.useFakeTimers({ now: NOW, toFake: ['Date'] });
});

afterEach(() => {
  vi.useRealTimers();
});

function setUp() {
  const aws = createMeteredAws([{ name: 'Mailroom', keys: ['PK', 'SK'] }]);
  const client = new DynamoDBClient(aws.client);
  const table = dynamoTable({ client, tableName: 'Mailroom' });
  const config = { service: 'orders', tableName: table.name, shards: 8, bornLeaseMs: 30_000 };
  const outbox = createOutbox({ config, table });
  const errors: Error[] = [];
  const oncePerKey = createOncePerKey({ recordsFor: requestRecords({ client, tableName: table.name }) });

  const apiWith = (part: Partial<Outbox> = {}) =>
    createOrdersApi({
      placeOrder: createPlaceOrder({ outbox: { ...outbox, ...part }, table, clock: systemClock, oncePerKey }),
      table,
      onError: (_, error) => errors.push(error),
    });
  const items = () => aws.items(table.name);
  const rows = (prefix: string) => items().filter((item) => String(item.PK).startsWith(prefix));
  return { table, items, outbox, errors, apiWith, api: apiWith(), rows };
}

function context(remainingMs = FUNCTION_TIMEOUT_MS): Context {
  return { getRemainingTimeInMillis: () => remainingMs } as Context;
}

function request(method: string, rawPath: string, part: { key?: string; body?: string } = {}): HttpRequest {
  return {
    rawPath,
    headers: part.key === undefined ? {} : { 'idempotency-key': part.key },
    requestContext: { http: { method } },
    body: part.body,
    isBase64Encoded: false,
  } as HttpRequest;
}

function post(body: unknown = order, key = 'key-1'): HttpRequest {
  return request('POST', '/orders', { key, body: JSON.stringify(body) });
}

function parsed(response: { body?: string | undefined }) {
  return JSON.parse(response.body ?? '');
}

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
    });
  });

  it('writes the order and OrderPlaced, both once', async () => {
    const { api, rows } = setUp();
    await api(post(), context());
    const orderId = orderIdOf('key-1');
    expect(rows('ORDER#')).toEqual([
      expect.objectContaining({ ...orderKey(orderId), schema: 1, totalCents: 2_500, payment: 'pending' }),
    ]);
    const [event, ...more] = rows('OUTBOX#').map((row) => JSON.parse(row.envelope) as Envelope);
    expect(more).toEqual([]);
    expect(event).toMatchObject({
      type: 'OrderPlaced',
      aggregateId: orderId,
      occurredAt: NOW,
      data: { orderId, ...order, totalCents: 2_500 },
    });
  });

  it('reads a body that the function URL handed on in base64', async () => {
    const { api } = setUp();
    const { body, ...rest } = post();
    const encoded = { ...rest, body: Buffer.from(body ?? '').toString('base64'), isBase64Encoded: true };
    expect(await api(encoded, context())).toMatchObject({ statusCode: 201 });
  });

  it('takes as many items as the limit says, and one transaction holds them', async () => {
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

  it('answers 500 and tells why only to us when the commit fails; the same key may then be used again', async () => {
    const { api, apiWith, errors } = setUp();
    const failing = apiWith({ commit: () => Promise.reject(new Error('table on fire')) });
    const response = await failing(post(), context());
    expect(response.statusCode).toBe(500);
    expect(response.body).not.toContain('fire');
    expect(errors.map((error) => error.message)).toEqual(['table on fire']);
    expect(await api(post(), context())).toMatchObject({ statusCode: 201 });
  });
});

describe('the same request again', () => {
  it('gets the same bytes and places nothing', async () => {
    const { api, rows } = setUp();
    const first = await api(post(), context());
    vi.setSystemTime(NOW + 60_000);
    expect(await api(post(), context())).toEqual(first);
    expect(rows('ORDER#')).toHaveLength(1);
    expect(rows('OUTBOX#')).toHaveLength(1);
  });

  it('gets the same bytes although its JSON is written another way', async () => {
    const { api } = setUp();
    const first = await api(post(), context());
    const other = { items: [{ unitPrice: 1_250, quantity: 2, sku: 'coffee' }], customerId: 'alice' };
    expect(await api(post(other), context())).toEqual(first);
  });

  it('gets the same bytes after the order has moved on and the stored answer has gone', async () => {
    const { api, table, rows } = setUp();
    const first = await api(post(), context());
    await moveOn(table, 'payment', 'captured');
    for (const { PK, SK } of rows('REQUEST#')) await table.write({ Delete: { Key: { PK, SK } } });
    expect(await api(post(), context())).toEqual(first);
    expect(rows('OUTBOX#')).toHaveLength(1);
  });

  it('is refused with 422 when it asks for something else', async () => {
    const { api, rows } = setUp();
    await api(post(), context());
    const response = await api(post({ ...order, customerId: 'bob' }), context());
    expect(response.statusCode).toBe(422);
    expect(parsed(response).error).toMatchObject({
      code: 'IDEMPOTENCY_KEY_REUSED',
      field: 'Idempotency-Key',
    });
    expect(rows('OUTBOX#')).toHaveLength(1);
  });

  it('is refused with 422 also when the stored answer has gone', async () => {
    const { api, table, rows } = setUp();
    await api(post(), context());
    for (const { PK, SK } of rows('REQUEST#')) await table.write({ Delete: { Key: { PK, SK } } });
    const other = { ...order, items: [{ ...order.items[0], quantity: 3 }] };
    expect(await api(post(other), context())).toMatchObject({ statusCode: 422 });
    expect(await api(post(), context())).toMatchObject({ statusCode: 201 });
  });

  it('of two at once, one places the order and the other gets its answer or is told to come again', async () => {
    const { api, rows } = setUp();
    const responses = await Promise.all([api(post(), context()), api(post(), context())]);
    for (const response of responses) expect([201, 409]).toContain(response.statusCode);
    expect(responses.map((response) => response.statusCode)).toContain(201);
    expect(rows('OUTBOX#')).toHaveLength(1);
  });
});

describe('a run that dies', () => {
  /** Starts a run that stops for good at its commit: before it, or right after it. */
  async function die(
    at: 'before' | 'after',
    { apiWith, outbox }: ReturnType<typeof setUp>,
    remainingMs?: number,
  ) {
    await new Promise<void>((reached) => {
      const commit: Outbox['commit'] = async (input) => {
        if (at === 'after') await outbox.commit(input);
        reached();
        return new Promise(() => {});
      };
      void apiWith({ commit })(post(), context(remainingMs));
    });
  }

  it('after its commit: the next run answers at once, as the first would have', async () => {
    const parts = setUp();
    await die('after', parts);
    vi.setSystemTime(NOW + 1_000);
    const second = await parts.api(post(), context());
    expect(second.statusCode).toBe(201);
    expect(parsed(second)).toMatchObject({ orderId: orderIdOf('key-1'), status: 'placed', placedAt: NOW });
    expect(parts.rows('OUTBOX#')).toHaveLength(1);
  });

  it('after its commit: once its time is over the next run stores the same answer', async () => {
    const parts = setUp();
    await die('after', parts);
    const before = await parts.api(post(), context());
    vi.setSystemTime(NOW + FUNCTION_TIMEOUT_MS + 1);
    const after = await parts.api(post(), context());
    expect(after).toEqual(before);
    expect(parts.rows('REQUEST#')).toEqual([
      expect.objectContaining({ status: 'COMPLETED', answer: after.body }),
    ]);
    expect(parts.rows('OUTBOX#')).toHaveLength(1);
  });

  it('after its commit: another request under its key is refused', async () => {
    const parts = setUp();
    await die('after', parts);
    const other = { ...order, customerId: 'bob' };
    expect(await parts.api(post(other), context())).toMatchObject({ statusCode: 422 });
    vi.setSystemTime(NOW + FUNCTION_TIMEOUT_MS + 1);
    expect(await parts.api(post(other), context())).toMatchObject({ statusCode: 422 });
  });

  it('before its commit: blocks the key for its own time only, with Retry-After', async () => {
    const parts = setUp();
    await die('before', parts);
    const blocked = await parts.api(post(), context());
    expect(blocked).toMatchObject({ statusCode: 409, headers: { 'retry-after': '1' } });
    expect(parsed(blocked).error.code).toBe('REQUEST_IN_PROGRESS');
    vi.setSystemTime(NOW + FUNCTION_TIMEOUT_MS + 1);
    expect(await parts.api(post(), context())).toMatchObject({ statusCode: 201 });
    expect(parts.rows('OUTBOX#')).toHaveLength(1);
  });

  it('before its commit and with no time left: does not block the key', async () => {
    const parts = setUp();
    await die('before', parts, 0);
    vi.setSystemTime(NOW + 2);
    expect(await parts.api(post(), context())).toMatchObject({ statusCode: 201 });
  });
});

describe('the request key in the table', () => {
  it('has a partition of its own for each key, and expires', async () => {
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

describe('a bad request', () => {
  const item = { sku: 'coffee', quantity: 1, unitPrice: 100 };
  const withItem = (part: object) => ({ customerId: 'alice', items: [item, { ...item, ...part }] });

  it.each<[what: string, body: unknown, field: string]>([
    ['no object', 'hello', 'body'],
    ['null', null, 'body'],
    ['a list', [], 'body'],
    ['no customer', { items: [item] }, 'customerId'],
    ['an empty customer', { customerId: '', items: [item] }, 'customerId'],
    ['a customer that is no text', { customerId: 7, items: [item] }, 'customerId'],
    ['a customer that is too long', { customerId: 'c'.repeat(101), items: [item] }, 'customerId'],
    ['a customer with a control character', { customerId: 'a\u0000', items: [item] }, 'customerId'],
    ['a customer that is no valid Unicode', { customerId: 'a\ud800', items: [item] }, 'customerId'],
    ['no items', { customerId: 'alice' }, 'items'],
    ['an empty list', { customerId: 'alice', items: [] }, 'items'],
    ['too many items', { customerId: 'alice', items: Array(51).fill(item) }, 'items'],
    ['items that are no list', { customerId: 'alice', items: item }, 'items'],
    ['an item that is no object', { customerId: 'alice', items: ['coffee'] }, 'items.0'],
    ['no sku', withItem({ sku: undefined }), 'items.1.sku'],
    ['an empty sku', withItem({ sku: '' }), 'items.1.sku'],
    ['a sku that is too long', withItem({ sku: 's'.repeat(101) }), 'items.1.sku'],
    ['a quantity of 0', withItem({ quantity: 0 }), 'items.1.quantity'],
    ['a negative quantity', withItem({ quantity: -1 }), 'items.1.quantity'],
    ['a quantity that is no whole number', withItem({ quantity: 1.5 }), 'items.1.quantity'],
    ['a quantity that is a text', withItem({ quantity: '1' }), 'items.1.quantity'],
    ['a quantity that is too large', withItem({ quantity: 10_001 }), 'items.1.quantity'],
    ['a fraction of a cent', withItem({ unitPrice: 9.99 }), 'items.1.unitPrice'],
    ['a negative price', withItem({ unitPrice: -1 }), 'items.1.unitPrice'],
    ['a price that is too high', withItem({ unitPrice: 1e300 }), 'items.1.unitPrice'],
    ['no price', withItem({ unitPrice: undefined }), 'items.1.unitPrice'],
    ['a member that nobody knows', { customerId: 'alice', items: [item], coupon: 'x' }, 'coupon'],
    ['a member of an item that nobody knows', withItem({ price: 1 }), 'items.1.price'],
  ])('with %s is answered 400 and names the field', async (_, body, field) => {
    const { api, items } = setUp();
    const response = await api(post(body), context());
    expect(response.statusCode).toBe(400);
    const { error } = parsed(response);
    expect(error).toMatchObject({ code: 'INVALID_REQUEST', field });
    expect(error.message).toMatch(/must be|is not known/);
    expect(items()).toEqual([]);
  });

  it.each([
    ['text', '{"customerId": "alice"'],
    ['an empty body', ''],
    ['no body', undefined],
  ])('with %s instead of JSON is answered 400', async (_, body) => {
    const { api } = setUp();
    const response = await api(
      request('POST', '/orders', { key: 'key-1', ...(body === undefined ? {} : { body }) }),
      context(),
    );
    expect(response.statusCode).toBe(400);
    expect(parsed(response).error).toMatchObject({ code: 'NOT_JSON', field: 'body' });
  });

  it('that is too large is answered 413', async () => {
    const { api } = setUp();
    const response = await api(post({ ...order, note: 'n'.repeat(BODY_BYTES_MAX) }), context());
    expect(response.statusCode).toBe(413);
    expect(parsed(response).error.message).toContain(`at most ${BODY_BYTES_MAX}`);
  });

  it.each([
    ['no key', undefined, 'IDEMPOTENCY_KEY_MISSING'],
    ['an empty key', '', 'INVALID_REQUEST'],
    ['a key that is too long', 'k'.repeat(256), 'INVALID_REQUEST'],
    ['a key with a blank', 'key 1', 'INVALID_REQUEST'],
    ['a key that is not ASCII', 'clé', 'INVALID_REQUEST'],
  ])('with %s is answered 400 and names the header', async (_, key, code) => {
    const { api } = setUp();
    const body = JSON.stringify(order);
    const response = await api(
      request('POST', '/orders', key === undefined ? { body } : { key, body }),
      context(),
    );
    expect(response.statusCode).toBe(400);
    expect(parsed(response).error).toMatchObject({ code, field: 'Idempotency-Key' });
  });

  it.each(['/', '/order', '/orders/', '/orders/a/b', '/ordersx'])('to %s is answered 404', async (path) => {
    const { api } = setUp();
    expect(await api(request('GET', path), context())).toMatchObject({ statusCode: 404 });
  });

  it.each([
    ['GET', '/orders', 'POST'],
    ['DELETE', '/orders', 'POST'],
    ['POST', `/orders/${orderIdOf('key-1')}`, 'GET'],
    ['PUT', `/orders/${orderIdOf('key-1')}`, 'GET'],
  ])('%s %s is answered 405 and says what is allowed', async (method, path, allowed) => {
    const { api } = setUp();
    const response = await api(request(method, path, { key: 'key-1' }), context());
    expect(response).toMatchObject({ statusCode: 405, headers: { allow: allowed } });
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

  it('answers 404 when nobody placed it', async () => {
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

async function moveOn(table: Table, half: string, state: string): Promise<void> {
  await table.write({
    Update: {
      Key: { ...orderKey(orderIdOf('key-1')) },
      UpdateExpression: 'SET #half = :state',
      ExpressionAttributeNames: { '#half': half },
      ExpressionAttributeValues: { ':state': state },
    },
  });
}
