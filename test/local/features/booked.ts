import { z } from 'zod/mini';
import { defineEvent } from '../../../lambdas/runtime/index.ts';

/** A numbered event, which bridges forward. */
export const Booked = defineEvent({
  source: 'ledger',
  type: 'Booked',
  version: 1,
  aggregateType: 'Account',
  sequence: true,
  schema: z.object({ note: z.string() }),
});
