import { OrderPlaced } from '../../../lambdas/example/events.ts';
import { lambdaConsumer, leased } from '../../../lambdas/runtime/index.ts';

/** A consumer of orders, of which none is placed. */
export const handler = lambdaConsumer([
  leased(OrderPlaced, async () => {
    throw new Error('A heartbeat must not reach a handler');
  }),
]);
