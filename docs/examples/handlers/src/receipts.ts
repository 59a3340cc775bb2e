import { lambdaConsumer, transactional } from 'cdk-mailroom/runtime';
import { OrderPlaced } from './events.ts';

/** Writes a receipt for each order, exactly once. */
export const handler = lambdaConsumer([
  transactional(OrderPlaced, async ({ data: { orderId, totalCents } }) => ({
    writes: [{ Put: { Item: { PK: `RECEIPT#${orderId}`, SK: 'RECEIPT', totalCents } } }],
  })),
]);
