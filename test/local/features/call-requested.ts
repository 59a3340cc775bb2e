import { z } from 'zod/mini';
import { defineEvent } from '../../../lambdas/runtime/index.ts';

/** A call of a provider, which takes two at a time. `first`: what its first attempt does */
export const CallRequested = defineEvent({
  source: 'calls',
  version: 1,
  aggregateType: 'Call',
  type: 'CallRequested',
  schema: z.object({ provider: z.string(), first: z.enum(['calls', 'exits', 'hangs']) }),
});
