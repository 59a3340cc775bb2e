import { lambdaConsumer, transactionalBatch } from '../../runtime/index.ts';
import { InvoiceIssued, OrderPaid } from './catalog.ts';

const row = (what: string) => (event: { readonly data: { readonly orderId: string } }) => ({
  Put: { Item: { PK: `HISTORY#${event.data.orderId}`, SK: what } },
});

/** Records what happened to orders. */
export const handler = lambdaConsumer([
  transactionalBatch(OrderPaid, async (events) => ({ writes: events.map(row('PAID')) })),
  transactionalBatch(InvoiceIssued, async (events) => ({ writes: events.map(row('INVOICED')) })),
]);
