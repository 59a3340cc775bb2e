import { lambdaConsumer, systemClock } from '../../runtime/index.ts';
import { orderStatusHandlers } from './order-status.ts';

/** The consumer `order-status`. */
export const handler = lambdaConsumer(({ table, outbox }) =>
  orderStatusHandlers({ table, outbox, clock: systemClock }),
);
