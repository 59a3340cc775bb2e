import type { LeasedContext } from '../../runtime/index.ts';
import type { Bank } from './bank.ts';
import type { DecidedPayment } from './payment.ts';

/** Gives a charge back, once: a side effect with a name, and so a key at the bank, of its own. */
export async function refundCharge(
  bank: Bank,
  payment: DecidedPayment & { readonly status: 'captured' },
  ctx: LeasedContext,
): Promise<DecidedPayment> {
  const { orderId, customerId, amountCents, chargeId } = payment;
  const { refundId } = await ctx.once('refund', (idempotencyKey, signal) =>
    bank.refund({ orderId, customerId, amountCents, chargeId, idempotencyKey }, signal),
  );
  return { orderId, customerId, amountCents, chargeId, refundId, status: 'refunded' };
}
