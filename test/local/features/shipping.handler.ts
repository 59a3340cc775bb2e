import { StockReserved } from '../../../lambdas/example/events.ts';
import { lambdaConsumer, leased } from '../../../lambdas/runtime/index.ts';

/** A consumer of an event that is never published: it receives heartbeats, which must not reach a handler. */
export const handler = lambdaConsumer([
  leased(StockReserved, async () => {
    throw new Error('A heartbeat must not reach a handler');
  }),
]);
