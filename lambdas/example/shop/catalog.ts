import * as z from 'zod/mini';
import { defineEvent } from '../../runtime/index.ts';

// The events of the shop. In three repositories, this file is a package that all of them install.
const schema = z.object({ orderId: z.string(), totalCents: z.int() });

export const OrderAccepted = defineEvent({
  source: 'shop-orders',
  type: 'OrderAccepted',
  version: 1,
  aggregateType: 'Order',
  schema,
});

export const OrderPaid = defineEvent({
  source: 'shop-payments',
  type: 'OrderPaid',
  version: 1,
  aggregateType: 'Order',
  schema,
});

export const InvoiceIssued = defineEvent({
  source: 'shop-invoices',
  type: 'InvoiceIssued',
  version: 1,
  aggregateType: 'Order',
  schema,
});
