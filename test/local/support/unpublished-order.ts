import { randomUUID } from 'node:crypto';
import { inject } from 'vitest';
import { required } from '../../../demo/readings.ts';
import { OrderPlaced } from '../../../lambdas/example/events.ts';
import { newOrder, type Order, orderRow } from '../../../lambdas/example/orders/order.ts';
import type { Envelope } from '../../../lambdas/runtime/events/event.ts';
import { createOutbox, dynamoTable } from '../../../lambdas/runtime/index.ts';
import type { StoredOutboxRow } from '../../../lambdas/runtime/store/stored-envelope.ts';
import { producerConfig } from '../../../testing/index.ts';
import { dynamoClient } from '../../support/aws.ts';
import { envelopeOf } from '../../support/envelope-of.ts';
import { newGoods, put } from './order-system.ts';

/** An outbox of a test's own, on the deployed table. */
export function outboxOf(service: string) {
  const config = producerConfig({ service, tableName: required(inject('outputs'), 'TableName') });
  const client = dynamoClient(inject('endpoint'));
  return createOutbox({ config, table: dynamoTable({ client, tableName: config.tableName }) });
}

/** An order whose row is there, and whose `OrderPlaced` is not sent yet: what becomes of it is up to the test. */
export interface UnpublishedOrder {
  readonly order: Order;
  readonly sku: string;
  readonly envelope: Envelope;
  /** The outbox row that placing the order would have written. */
  readonly row: StoredOutboxRow;
}

/** Writes an order of three pieces at 4.50, with ten in stock. */
export async function unpublishedOrder(customerId = `customer-${randomUUID()}`): Promise<UnpublishedOrder> {
  const sku = await newGoods(10);
  const wish = { customerId, items: [{ sku, quantity: 3, unitPrice: 450 }] };
  const order = newOrder(randomUUID(), wish, Date.now());
  const { orderId, totalCents, items } = order;
  const [entry] = await outboxOf('orders').entries([
    OrderPlaced.create({
      aggregateId: orderId,
      data: { orderId, customerId, items: [...items], totalCents },
    }),
  ]);
  if (entry === undefined) throw new Error('The outbox made no entry');
  await put(orderRow(order));
  const row = entry.Put.Item;
  return { order, sku, row, envelope: envelopeOf(row) };
}
