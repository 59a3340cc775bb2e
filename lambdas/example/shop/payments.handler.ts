import { lambdaConsumer, transactional } from '../../runtime/index.ts';
import { OrderAccepted, OrderPaid } from './catalog.ts';

/** Takes the payment of an accepted order. */
export const handler = lambdaConsumer([
  transactional(OrderAccepted, async ({ data }) => ({
    writes: [{ Put: { Item: { PK: `PAYMENT#${data.orderId}`, SK: 'PAYMENT', ...data } } }],
    events: [OrderPaid.create({ aggregateId: data.orderId, data })],
  })),
]);
