import { lambdaOutbox } from 'cdk-mailroom/runtime';
import { OrderPlaced } from './events.ts';

const outbox = lambdaOutbox();

/** Writes an order and its event in one transaction. */
export async function handler(order: { orderId: string; totalCents: number }): Promise<void> {
  const Item = { PK: `ORDER#${order.orderId}`, SK: 'ORDER', ...order };
  await outbox.commit({
    writes: [{ Put: { Item, ConditionExpression: 'attribute_not_exists(PK)' } }],
    events: [OrderPlaced.create({ aggregateId: order.orderId, data: order })],
  });
}
