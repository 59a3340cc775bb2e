import { lambdaConsumer, transactional } from '../../runtime/index.ts';
import { InvoiceIssued, OrderPaid } from './catalog.ts';

/** Issues the invoice of a paid order. */
export const handler = lambdaConsumer([
  transactional(OrderPaid, async ({ data }) => ({
    writes: [{ Put: { Item: { PK: `INVOICE#${data.orderId}`, SK: 'INVOICE', ...data } } }],
    events: [InvoiceIssued.create({ aggregateId: data.orderId, data })],
  })),
]);
