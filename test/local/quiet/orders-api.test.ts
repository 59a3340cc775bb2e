import { randomUUID } from 'node:crypto';
import { DeleteCommand, UpdateCommand } from '@aws-sdk/lib-dynamodb';
import { describe, expect, it, vi } from 'vitest';
import { orderIdOf } from '../../../lambdas/example/orders/order.ts';
import {
  charges,
  documents,
  eventsWith,
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
  it('an order request is answered with the order and its address', async () => {
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

  it('a request is stored with its answer under its key for a day', async () => {
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

describe.concurrent('the function URL', () => {
  it.each([
    [
      'a malformed order',
      'POST',
      'orders',
      JSON.stringify({ customerId: 'ada', items: [] }),
      400,
      'INVALID_REQUEST',
    ],
    ['a body that is not JSON', 'POST', 'orders', '{"customerId":', 400, 'NOT_JSON'],
    [
      'a body of more than 64 KB',
      'POST',
      'orders',
      JSON.stringify({ note: 'x'.repeat(66_000) }),
      413,
      'BODY_TOO_LARGE',
    ],
    ['a key that is not ASCII', 'POST', 'orders', '{}', 400, 'INVALID_REQUEST', 'clé'],
    ['an unknown order', 'GET', `orders/${orderIdOf(randomUUID())}`, undefined, 404, 'NO_SUCH_ORDER'],
    ['an unknown path', 'GET', 'customers', undefined, 404, 'NO_SUCH_ROUTE'],
    ['an unknown method', 'DELETE', `orders/${orderIdOf('a')}`, undefined, 405, 'METHOD_NOT_ALLOWED'],
  ])(
    'answers %s with a clear error',
    async (_, method, path, body, status, code, key: string = randomUUID()) => {
      const headers = { 'idempotency-key': key };
      const answer = await request(method, path, { headers, ...(body === undefined ? {} : { body }) });
      expect(answer.status).toBe(status);
      expect(JSON.parse(answer.text)).toMatchObject({ error: { code, message: expect.any(String) } });
    },
  );

  it('accepts a corrected order under the key of a refused one', async () => {
    const [wish, key] = [await wishFor(), randomUUID()];
    expect((await post({ ...wish, items: [] }, key)).status).toBe(400);
    expect((await post(wish, key)).status).toBe(201);
  });
});
