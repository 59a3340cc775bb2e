import { defineEvent } from 'cdk-mailroom/runtime';
import * as z from 'zod/mini';

export const OrderPlaced = defineEvent({
  source: 'orders',
  type: 'OrderPlaced',
  version: 1,
  aggregateType: 'Order',
  schema: z.object({ orderId: z.string(), totalCents: z.int() }),
});
