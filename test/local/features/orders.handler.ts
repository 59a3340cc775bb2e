import type { Context, SQSEvent } from 'aws-lambda';
import { OrderPlaced } from '../../../lambdas/example/events.ts';
import { lambdaConsumer, lambdaOutbox, transactional } from '../../../lambdas/runtime/index.ts';

const outbox = lambdaOutbox();

const consume = lambdaConsumer([
  transactional(OrderPlaced, async ({ data: { orderId } }) => ({
    writes: [{ Put: { Item: { PK: `RESERVATION#${orderId}`, SK: 'RESERVATION' } } }],
  })),
]);

/** Places an order, or processes the messages of its queue. */
export async function handler(event: { readonly orderId: string } | SQSEvent, context: Context) {
  if (!('orderId' in event)) return consume(event, context);
  const { orderId } = event;
  const items = [{ sku: 'coffee', quantity: 1, unitPrice: 450 }];
  const data = { orderId, customerId: 'customer-1', items, totalCents: 450 };
  const [placed] = await outbox.commit({ events: [OrderPlaced.create({ aggregateId: orderId, data })] });
  return placed?.eventId;
}
