import { lambdaConsumer, transactional } from '../../runtime/index.ts';
import { InvoiceIssued, OrderPaid } from './catalog.ts';

const row = (orderId: string, what: string) => ({ Put: { Item: { PK: `HISTORY#${orderId}`, SK: what } } });

/** Records what happened to an order. */
export const handler = lambdaConsumer([
  transactional(OrderPaid, async ({ data }) => ({ writes: [row(data.orderId, 'PAID')] })),
  transactional(InvoiceIssued, async ({ data }) => ({ writes: [row(data.orderId, 'INVOICED')] })),
]);
