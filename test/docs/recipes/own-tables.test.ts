import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { describe, expect, test } from 'vitest';
import { createOutbox, type Outbox, type TransactAction } from '../../../lambdas/runtime/index.ts';
import { memoryTable, producerConfig } from '../../../testing/index.ts';
import { codeOf } from '../page-module.ts';

type PlaceOrder = (order: { orderId: string; totalCents: number }) => Promise<void>;
interface Shown {
  placeOrder(orders: unknown, outbox: Outbox, client?: unknown): PlaceOrder;
}

const electrodb = 'docs/recipes/electrodb.md';
const toolbox = 'docs/recipes/dynamodb-toolbox.md';
const existing = await codeOf<{ placeOrder(outbox: Outbox, table: string): PlaceOrder }>(
  'docs/recipes/existing-table.md',
  'src/place-order.ts',
);

const order = { orderId: 'A-42', totalCents: 4200 };
const event = expect.objectContaining({
  SK: expect.stringMatching(/^EVENT#/),
  type: 'OrderPlaced',
  status: 'PENDING',
});

function setUp() {
  const table = memoryTable({ otherTables: { orders: ['id'] } });
  const client = {
    send: (command: { input: { TransactItems: TransactAction[] } }) =>
      table.transact(command.input.TransactItems),
  } as unknown as DynamoDBDocumentClient;
  return { table, client, outbox: createOutbox({ config: producerConfig(), table }) };
}

describe.each([
  ['electrodb.md', electrodb, 'src/place-order.ts'],
  ['electrodb.md, in its own transaction', electrodb, 'src/place-order-own.ts'],
  ['dynamodb-toolbox.md', toolbox, 'src/place-order.ts'],
])('%s', async (_, page, file) => {
  const { orderEntity } = await codeOf<{ orderEntity(table: string): unknown }>(page, 'src/order-entity.ts');
  const { placeOrder } = await codeOf<Shown>(page, file);

  test('an order and its event are written together, once', async () => {
    const { table, client, outbox } = setUp();
    const place = placeOrder(orderEntity(table.name), outbox, client);
    await place(order);
    await expect(place(order)).rejects.toMatchObject({ code: 'TRANSACTION_CANCELLED' });
    expect(table.items()).toEqual([
      expect.objectContaining({ PK: 'ORDER#A-42', SK: 'ORDER', totalCents: 4200 }),
      event,
    ]);
  });
});

test('existing-table.md: the order is in its own table, the event in the outbox, or neither', async () => {
  const { table, outbox } = setUp();
  const place = existing.placeOrder(outbox, 'orders');
  await place(order);
  await expect(place({ ...order, totalCents: 1 })).rejects.toMatchObject({ code: 'TRANSACTION_CANCELLED' });
  expect(table.items('orders')).toEqual([{ id: 'A-42', total: 4200 }]);
  expect(table.items()).toEqual([event]);
});
