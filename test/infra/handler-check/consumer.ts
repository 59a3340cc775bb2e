import * as z from 'zod';
import { defineEvent, lambdaConsumer, leased } from '../../../lambdas/runtime/index.ts';

const OrderPlaced = defineEvent({
  source: 'orders',
  type: 'OrderPlaced',
  version: 1,
  aggregateType: 'Order',
  schema: z.object({}),
});

if (!process.env.BANK_URL) throw new Error('BANK_URL is not set');

/** A consumer as apps write it: its handlers need the table, and its module the environment. */
export const handler = lambdaConsumer(({ table }) => [
  leased(OrderPlaced, async () => {
    await table.get({ PK: new URL(process.env.BANK_URL ?? '').host, SK: 'X' });
  }),
]);
