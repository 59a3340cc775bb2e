import type { LeasedContext } from '../../runtime/index.ts';
import type { Bank } from './bank-client.ts';
import type { DecidedPayment, Ended, Invoice } from './payment.ts';

/** Refunds a charge once: a separate side effect with its own name, and so its own key at the bank. */
export async function refundCharge(
  bank: Bank,
  payment: Invoice & Ended & { readonly chargeId: string },
  ctx: LeasedContext,
): Promise<DecidedPayment> {
  const { orderId, customerId, amountCents, chargeId, expired } = payment;
  const { refundId } = await ctx.once('refund', (idempotencyKey, signal) =>
    bank.refund({ orderId, customerId, amountCents, chargeId, idempotencyKey }, signal),
  );
  return { orderId, customerId, amountCents, chargeId, refundId, expired, status: 'refunded' };
}
