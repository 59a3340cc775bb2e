import { OrderPlaced } from '../../../lambdas/example/events.ts';
import { lambdaOutbox, lambdaPublisher } from '../../../lambdas/runtime/index.ts';

const outbox = lambdaOutbox({ publishAtOnce: lambdaPublisher });

/** Places an order of one item. @returns the id of its event */
export async function handler({ orderId }: { readonly orderId: string }): Promise<string | undefined> {
  const items = [{ sku: 'coffee', quantity: 1, unitPrice: 450 }];
  const data = { orderId, customerId: 'customer-1', items, totalCents: 450 };
  const [event] = await outbox.commit({ events: [OrderPlaced.create({ aggregateId: orderId, data })] });
  return event?.eventId;
}
