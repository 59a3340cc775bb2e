import { z } from 'zod/mini';
import { defineEvent } from '../../../lambdas/runtime/index.ts';

const orders = { source: 'warehouse', version: 1, aggregateType: 'Parcel' };

/** Begins an execution. `crash`: the function ends after its first start, and stores no result. */
export const PackingRequested = defineEvent({
  ...orders,
  type: 'PackingRequested',
  schema: z.object({ parcel: z.string(), crash: z.boolean() }),
});

/** The result of an execution. */
export const Packed = defineEvent({ ...orders, type: 'Packed', schema: z.object({ outcome: z.string() }) });
