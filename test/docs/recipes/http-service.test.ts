import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import {
  createOutbox,
  type Outbox,
  type Table,
  TransactionCancelled,
} from '../../../lambdas/runtime/index.ts';
import { memoryTable, producerConfig } from '../../../testing/index.ts';
import { codeOf } from '../page-module.ts';

type PlaceOrder = (key: string | undefined, totalCents: number) => Promise<{ status: number; body: object }>;
type Application = { listen(port: number, host: string): Server };

const page = 'docs/recipes/http-service.md';
const { createPlaceOrder } = await codeOf<{
  createPlaceOrder(deps: { outbox: Outbox; table: Table }): PlaceOrder;
}>(page, 'src/orders.ts');
const { expressApp } = await codeOf<{ expressApp(placeOrder: PlaceOrder): Application }>(
  page,
  'src/express-app.ts',
);

function service(table: Table = memoryTable()): PlaceOrder {
  return createPlaceOrder({ outbox: createOutbox({ config: producerConfig(), table }), table });
}

test('Express places one order per key, and reports what was wrong', async () => {
  const server = expressApp(service()).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const post = async (key: Record<string, string>, body: string) => {
    const headers = { 'Content-Type': 'application/json', ...key };
    const { status } = await fetch(`http://127.0.0.1:${port}/orders`, { method: 'POST', headers, body });
    return status;
  };
  const order = '{"totalCents":4200}';
  expect(await post({ 'Idempotency-Key': 'a' }, order)).toBe(201);
  expect(await post({ 'Idempotency-Key': 'a' }, order)).toBe(201);
  expect(await post({ 'Idempotency-Key': 'a' }, '{"totalCents":1}')).toBe(409);
  expect(await post({ 'Idempotency-Key': 'b' }, '{}')).toBe(400);
  expect(await post({ 'Idempotency-Key': 'b' }, 'no json')).toBe(400);
  expect(await post({}, order)).toBe(400);
});

test.each([
  ['a table that throttles', new TransactionCancelled([{ code: 'ThrottlingError' }, { code: 'None' }])],
  ['a lost connection', new Error('socket hang up')],
])('%s is answered with 503, and the same request places the order later', async (_, error) => {
  const log = vi.spyOn(console, 'error').mockImplementation(() => {});
  const table = memoryTable();
  const broken: Table = { ...table, transact: () => Promise.reject(error) };
  expect((await service(broken)('a', 4200)).status).toBe(503);
  expect(log).toHaveBeenCalledWith(error);
  expect((await service(table)('a', 4200)).status).toBe(201);
});

test('an order whose answer was lost is found by the same request', async () => {
  vi.spyOn(console, 'error').mockImplementation(() => {});
  const table = memoryTable();
  const deaf: Table = {
    ...table,
    transact: async (...call) => {
      await table.transact(...call);
      throw new Error('socket hang up');
    },
  };
  expect((await service(deaf)('a', 4200)).status).toBe(503);
  expect((await service(table)('a', 4200)).status).toBe(201);
  expect(table.items()).toHaveLength(2);
});
