import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createMeteredAws } from '../../../bench/aws/metered-aws.ts';
import { createOncePerKey, type HttpAnswer, type OncePerKey } from '../../../lambdas/runtime/http.ts';
import { createOutbox, dynamoTable, type Outbox, type Table } from '../../../lambdas/runtime/index.ts';
import { TransactionCancelled } from '../../../lambdas/runtime/internals.ts';
import { producerConfig } from '../../../testing/index.ts';
import { codeOf } from '../page-module.ts';

type PlaceOrder = (key: string | undefined, totalCents: number) => Promise<HttpAnswer>;
type Application = { listen(port: number, host: string): Server };
type HonoApplication = { request(path: string, init: RequestInit): Promise<Response> };

const page = 'docs/recipes/http-service.md';
const { createPlaceOrder } = await codeOf<{
  createPlaceOrder(deps: { outbox: Outbox; table: Table; oncePerKey: OncePerKey }): PlaceOrder;
}>(page, 'src/orders.ts');
const { expressApp } = await codeOf<{ expressApp(placeOrder: PlaceOrder): Application }>(
  page,
  'src/express-app.ts',
);
const { honoApp } = await codeOf<{ honoApp(placeOrder: PlaceOrder): HonoApplication }>(
  page,
  'src/hono-app.ts',
);

/** The table and the service, with a table whose parts a test replaces. */
function setUp() {
  const aws = createMeteredAws([{ name: 'Mailroom', keys: ['PK', 'SK'] }]);
  const client = new DynamoDBClient(aws.client);
  const table = dynamoTable({ client, tableName: 'Mailroom' });
  const oncePerKey = createOncePerKey({ client, tableName: 'Mailroom', operation: 'orders' });
  const serviceWith = (part: Partial<Table>) => {
    const changed = { ...table, ...part };
    const outbox = createOutbox({ config: producerConfig(), table: changed });
    return createPlaceOrder({ outbox, table: changed, oncePerKey });
  };
  const rows = (prefix: string) => aws.items('Mailroom').filter(({ PK }) => String(PK).startsWith(prefix));
  return { table, serviceWith, service: serviceWith({}), rows };
}

test('Express places one order per key, and reports what was wrong', async () => {
  const server = expressApp(setUp().service).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const post = async (key: Record<string, string>, body: string) => {
    const headers = { 'Content-Type': 'application/json', ...key };
    const response = await fetch(`http://127.0.0.1:${port}/orders`, { method: 'POST', headers, body });
    return [response.status, response.headers.get('idempotent-replayed')];
  };
  const order = '{"totalCents":4200}';
  expect(await post({ 'Idempotency-Key': 'a' }, order)).toEqual([201, null]);
  expect(await post({ 'Idempotency-Key': 'a' }, order)).toEqual([201, 'true']);
  expect(await post({ 'Idempotency-Key': 'a' }, '{"totalCents":1}')).toEqual([422, null]);
  expect(await post({ 'Idempotency-Key': 'b' }, '{}')).toEqual([400, null]);
  expect(await post({ 'Idempotency-Key': 'b' }, 'no json')).toEqual([400, null]);
  expect(await post({}, order)).toEqual([400, null]);
});

test("Hono does so too, even without Powertools' records", async () => {
  vi.stubEnv('POWERTOOLS_IDEMPOTENCY_DISABLED', 'true');
  const { service, rows } = setUp();
  const app = honoApp(service);
  const post = (key: string, totalCents: number) =>
    app.request('/orders', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'Idempotency-Key': key },
      body: JSON.stringify({ totalCents }),
    });
  const answers = [await post('a', 4200), await post('a', 4200)];
  expect(answers.map(({ status }) => status)).toEqual([201, 201]);
  expect(answers.map(({ headers }) => headers.get('idempotent-replayed'))).toEqual([null, 'true']);
  expect(await answers[0]?.text()).toBe(await answers[1]?.text());
  expect((await post('a', 9900)).status).toBe(422);
  expect((await post('b', 0.5)).status).toBe(400);
  expect([...rows('ORDER#'), ...rows('OUTBOX#')]).toHaveLength(2);
  expect(rows('REQUEST#')).toEqual([]);
});

test.each([
  ['a table that throttles', new TransactionCancelled([{ code: 'ThrottlingError' }, { code: 'None' }])],
  ['a lost connection', new Error('socket hang up')],
])('%s is answered with 503, and the same request places the order later', async (_, error) => {
  const log = vi.spyOn(console, 'error').mockImplementation(() => {});
  const { service, serviceWith } = setUp();
  const broken = serviceWith({ transact: () => Promise.reject(error) });
  expect(await broken('a', 4200)).toMatchObject({ statusCode: 503, headers: { 'retry-after': '1' } });
  expect(log).toHaveBeenCalledWith(error);
  expect((await service('a', 4200)).statusCode).toBe(201);
});

test('an order whose answer was lost on the way from the table is found at once', async () => {
  const { table, service, serviceWith, rows } = setUp();
  const deaf = serviceWith({
    transact: async (...call) => {
      await table.transact(...call);
      throw new Error('socket hang up');
    },
  });
  expect(await deaf('a', 4200)).toMatchObject({
    statusCode: 201,
    headers: { 'idempotent-replayed': 'true' },
  });
  expect(await service('a', 4200)).toMatchObject({ statusCode: 201 });
  expect([...rows('ORDER#'), ...rows('OUTBOX#')]).toHaveLength(2);
});
