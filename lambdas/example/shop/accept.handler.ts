import { lambdaOutbox } from '../../runtime/index.ts';
import { OrderAccepted } from './catalog.ts';

const outbox = lambdaOutbox();

/** Accepts an order. @returns the id of its event */
export async function handler(data: { readonly orderId: string; readonly totalCents: number }) {
  const [event] = await outbox.commit({
    events: [OrderAccepted.create({ aggregateId: data.orderId, data })],
  });
  return event?.eventId;
}
