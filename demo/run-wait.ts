import { isSettled } from '../lambdas/example/orders/order.ts';
import { isLate, isUnchargeable } from './planned-orders.ts';
import type { Readings } from './readings.ts';
import type { Progress } from './receipt.ts';

/**
 * Describes what a run waits for once all orders are placed. It follows the step on a line of 80 columns.
 *
 * @example
 * ```ts
 * waitText(readings, progressOf(readings, 200), Date.now()); // 'the unpaid order expires in 12 s'
 * ```
 */
export function waitText(readings: Readings, { processed, expected }: Progress, now: number): string {
  const open = readings.orders.filter((order) => !isSettled(order));
  const [only] = open;
  // While others are open, the counts tell more.
  const special =
    only === undefined || open.length > 1
      ? undefined
      : isLate(only)
        ? unpaidText(readings, only.orderId, now)
        : isUnchargeable(only) && paymentOf(readings, only.orderId)?.status === 'REJECTED'
          ? 'the dead letter of the payment that the bank refuses'
          : undefined;
  return special ?? `${processed}/${expected} processed, ${readings.queued} queued`;
}

/** The next step of the order that is not paid: its expiry is due, then published, and payments asks the bank once more. */
function unpaidText(readings: Readings, orderId: string, now: number): string | undefined {
  const seconds = (at: number) => `${Math.ceil((at - now) / 1_000)} s`;
  const expiry = readings.expiries.find(({ envelope }) => envelope.aggregateId === orderId)?.row;
  if (expiry?.dueAt === undefined) return undefined;
  if (expiry.status !== 'PUBLISHED')
    return expiry.dueAt > now
      ? `the unpaid order expires in ${seconds(expiry.dueAt)}`
      : 'a sweep publishes the expiry of the unpaid order';
  const payment = paymentOf(readings, orderId);
  return payment?.status === 'FAILED' && payment.retryAt !== undefined && payment.retryAt > now
    ? `payments asks the bank once more in ${seconds(payment.retryAt)}`
    : undefined;
}

/** The message of payments that charges an order. */
function paymentOf({ events, inbox }: Readings, orderId: string) {
  const placed = events.find(
    ({ envelope }) => envelope.type === 'OrderPlaced' && envelope.aggregateId === orderId,
  );
  return placed && inbox.payments.get(placed.envelope.eventId);
}
