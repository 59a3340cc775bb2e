import { randomUUID } from 'node:crypto';
import { DeleteCommand, UpdateCommand } from '@aws-sdk/lib-dynamodb';
import { describe, expect, it, vi } from 'vitest';
import { orderIdOf } from '../../../lambdas/example/orders/order.ts';
import {
  charges,
  documents,
  eventsWith,
  get,
  newGoods,
  partition,
  post,
  request,
  settled,
  shownOrder,
  tableName,
} from '../support/order-system.ts';

vi.setConfig({ maxConcurrency: 10 });

/** An order of goods that only it asks for. */
async function wishFor(quantity = 1) {
  return {
    customerId: `customer-${randomUUID()}`,
    items: [{ sku: await newGoods(10), quantity, unitPrice: 100 }],
  };
}

/** The one row that Powertools keeps of a request. */
async function requestRow(key: string) {
  const [row, ...more] = await partition(`REQUEST#${key}`);
  expect(more).toEqual([]);
  return row;
}

describe.concurrent('a request to place an order', () => {
  it('is answered with the order, and where it is', async () => {
    const wish = await wishFor(2);
    const answer = await post(wish);

    expect(answer.status).toBe(201);
    const order = JSON.parse(answer.text);
    expect(order).toMatchObject({ ...wish, status: 'placed', totalCents: 200, placedAt: expect.any(Number) });
    expect(answer.location).toBe(`/orders/${order.orderId}`);
    expect(await shownOrder(order.orderId)).toMatchObject(wish);
  });

  it('a repeated request gets the same bytes, whatever has happened to the order', async () => {
    const [wish, key] = [await wishFor(), randomUUID()];
    const first = await post(wish, key);
    expect(await post(wish, key)).toEqual(first);

    const { orderId } = JSON.parse(first.text);
    await settled(orderId);
    expect(await post(wish, key)).toEqual(first);
    expect(await charges(orderId)).toHaveLength(1);
  });

  it('a request that is sent five times at once places one order', async () => {
    const [wish, key] = [await wishFor(3), randomUUID()];
    const answers = await Promise.all(Array.from({ length: 5 }, () => post(wish, key)));

    // 409 is for a repeat that met the first run before its commit; it is sent again.
    expect(answers.every(({ status }) => status === 201 || status === 409)).toBe(true);
    const bodies = new Set(answers.filter(({ status }) => status === 201).map(({ text }) => text));
    expect([...bodies]).toEqual([(await post(wish, key)).text]);
    const { events } = await settled(orderIdOf(key));
    expect(events.filter(({ envelope }) => envelope.type === 'OrderPlaced')).toHaveLength(1);
    expect(await charges(orderIdOf(key))).toHaveLength(1);
  });

  it('is kept with its answer under its key, for a day', async () => {
    const [wish, key] = [await wishFor(), randomUUID()];
    const askedAt = Date.now();
    const answer = await post(wish, key);
    const answeredAt = Date.now();

    const row = await requestRow(key);
    expect(row).toMatchObject({ status: 'COMPLETED', answer: answer.text });
    // In whole seconds, rounded either way.
    expect(row?.expiresAt).toBeGreaterThanOrEqual(Math.floor(askedAt / 1_000) + 86_400);
    expect(row?.expiresAt).toBeLessThanOrEqual(Math.ceil(answeredAt / 1_000) + 86_400);
  });

  it('a request with other content under the same key is refused and changes nothing', async () => {
    const [wish, key] = [await wishFor(), randomUUID()];
    const first = await post(wish, key);
    const other = await post({ ...wish, customerId: 'somebody-else' }, key);

    expect(other.status).toBe(422);
    expect(JSON.parse(other.text)).toMatchObject({
      error: { code: 'IDEMPOTENCY_KEY_REUSED', field: 'Idempotency-Key' },
    });
    const { orderId } = JSON.parse(first.text);
    expect(await shownOrder(orderId)).toMatchObject({ customerId: wish.customerId });
    expect(await post(wish, key)).toEqual(first);
  });

  it('a request with other content is refused even if only the order remembers the key', async () => {
    const [wish, key] = [await wishFor(), randomUUID()];
    expect((await post(wish, key)).status).toBe(201);
    await forget(key);

    expect((await post({ ...wish, customerId: 'somebody-else' }, key)).status).toBe(422);
  });
});

/** Removes what Powertools keeps of a request: what its expiry, or a run that died before it wrote, leaves behind. */
async function forget(key: string): Promise<void> {
  const row = await requestRow(key);
  await documents.send(new DeleteCommand({ TableName: tableName, Key: { PK: row?.PK, SK: row?.SK } }));
}

/** Puts a request back to where its run was when it died: begun, its answer not stored. */
async function unfinish(key: string, leaseUntil: number): Promise<void> {
  const row = await requestRow(key);
  await documents.send(
    new UpdateCommand({
      TableName: tableName,
      Key: { PK: row?.PK, SK: row?.SK },
      UpdateExpression: 'SET #status = :status, leaseUntil = :until REMOVE answer',
      ExpressionAttributeNames: { '#status': 'status' },
      ExpressionAttributeValues: { ':status': 'INPROGRESS', ':until': leaseUntil },
    }),
  );
}

describe.concurrent('a request whose first run died after its commit', () => {
  it.each([
    ['whose record is gone', forget],
    ['whose record says that it may still run', (key: string) => unfinish(key, Date.now() + 60_000)],
    ['whose record says that it has run out of time', (key: string) => unfinish(key, Date.now() - 1_000)],
  ])('and %s is answered as the first time, and there is one order', async (_, die) => {
    const [wish, key] = [await wishFor(), randomUUID()];
    const first = await post(wish, key);
    expect(first.status).toBe(201);
    await die(key);

    expect(await post(wish, key)).toEqual(first);
    const { orderId } = JSON.parse(first.text);
    await settled(orderId);
    const events = await eventsWith(orderId);
    expect(events.filter(({ envelope }) => envelope.type === 'OrderPlaced')).toHaveLength(1);
    expect(await charges(orderId)).toHaveLength(1);
  });
});

const item = { sku: 'coffee', quantity: 1, unitPrice: 100 };
const good = { customerId: 'ada', items: [item] };

describe.concurrent('a malformed order', () => {
  it.each<[string, string, unknown]>([
    ['no object', 'body', []],
    ['null', 'body', null],
    ['no customer', 'customerId', { items: [item] }],
    ['an empty customer', 'customerId', { ...good, customerId: '' }],
    ['a customer that is a number', 'customerId', { ...good, customerId: 7 }],
    ['a customer of 101 characters', 'customerId', { ...good, customerId: 'a'.repeat(101) }],
    ['a customer with a line break', 'customerId', { ...good, customerId: 'a\nb' }],
    ['no items', 'items', { customerId: 'ada' }],
    ['an empty list of items', 'items', { ...good, items: [] }],
    ['51 items', 'items', { ...good, items: Array.from({ length: 51 }, () => item) }],
    ['items that are a text', 'items', { ...good, items: 'coffee' }],
    ['an item that is null', 'items.0', { ...good, items: [null] }],
    ['an item without a SKU', 'items.0.sku', { ...good, items: [{ quantity: 1, unitPrice: 1 }] }],
    ['a quantity of none', 'items.0.quantity', { ...good, items: [{ ...item, quantity: 0 }] }],
    ['a quantity below none', 'items.1.quantity', { ...good, items: [item, { ...item, quantity: -1 }] }],
    ['half a piece', 'items.0.quantity', { ...good, items: [{ ...item, quantity: 0.5 }] }],
    ['a quantity that is a text', 'items.0.quantity', { ...good, items: [{ ...item, quantity: '1' }] }],
    ['a price below nothing', 'items.0.unitPrice', { ...good, items: [{ ...item, unitPrice: -1 }] }],
    ['a price of half a cent', 'items.0.unitPrice', { ...good, items: [{ ...item, unitPrice: 0.5 }] }],
    ['a misspelt member', 'customer', { ...good, customer: 'ada' }],
    ['a misspelt member of an item', 'items.0.qty', { ...good, items: [{ ...item, qty: 1 }] }],
  ])('with %s is refused, naming %s', async (_, field, wish) => {
    const key = randomUUID();
    const answer = await post(wish, key);

    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.text)).toMatchObject({
      error: { code: 'INVALID_REQUEST', field, message: expect.stringContaining(field) },
    });
    expect(await get({ PK: `ORDER#${orderIdOf(key)}`, SK: 'ORDER' })).toBeUndefined();
  });

  it('a request that is not JSON is refused', async () => {
    const headers = { 'idempotency-key': randomUUID() };
    const answer = await request('POST', 'orders', { headers, body: '{"customerId":' });
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.text)).toMatchObject({ error: { code: 'NOT_JSON', field: 'body' } });
  });

  it('a request of more than 64 KB is refused', async () => {
    const answer = await post({ ...good, note: 'x'.repeat(66_000) });
    expect(answer.status).toBe(413);
    expect(JSON.parse(answer.text)).toMatchObject({ error: { code: 'BODY_TOO_LARGE' } });
  });

  it('may be sent again in good shape under the same key', async () => {
    const [wish, key] = [await wishFor(), randomUUID()];
    expect((await post({ ...wish, items: [] }, key)).status).toBe(400);
    expect((await post(wish, key)).status).toBe(201);
  });
});

describe.concurrent('an Idempotency-Key', () => {
  it('a request without an Idempotency-Key is told to send one', async () => {
    const answer = await request('POST', 'orders', { body: JSON.stringify(good) });
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.text)).toMatchObject({
      error: { code: 'IDEMPOTENCY_KEY_MISSING', field: 'Idempotency-Key' },
    });
  });

  it.each([
    ['empty', ''],
    ['of 256 characters', 'k'.repeat(256)],
    ['with a blank in it', 'a key'],
    ['that is not ASCII', 'clé'],
  ])('%s is refused', async (_, key) => {
    const answer = await post(good, key);
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.text)).toMatchObject({ error: { field: 'Idempotency-Key' } });
  });
});

describe.concurrent('anything else', () => {
  it.each([
    ['an order that was never placed', 'GET', `orders/${orderIdOf(randomUUID())}`, 404, 'NO_SUCH_ORDER'],
    ['an order id that is none', 'GET', 'orders/42', 400, 'INVALID_REQUEST'],
    ['a path that is none', 'GET', 'customers', 404, 'NO_SUCH_ROUTE'],
    ['a path below an order', 'GET', `orders/${orderIdOf('a')}/items`, 404, 'NO_SUCH_ROUTE'],
    ['a list of orders', 'GET', 'orders', 405, 'METHOD_NOT_ALLOWED'],
    ['the removal of an order', 'DELETE', `orders/${orderIdOf('a')}`, 405, 'METHOD_NOT_ALLOWED'],
  ])('%s is answered with a clear error', async (_, method, path, status, code) => {
    const answer = await request(method, path);
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.text)).toMatchObject({ error: { code, message: expect.any(String) } });
  });
});
