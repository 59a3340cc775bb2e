import {
  type Commit,
  type Handler,
  leased,
  type PastEffect,
  type RejectedContext,
  type Table,
} from '../../runtime/index.ts';
import { PaymentRejected } from '../events.ts';
import type { Bank, ChargeResult } from './bank-client.ts';
import { type DecidedPayment, decide, type Invoice, paymentKey, paymentOfRow } from './payment.ts';
import { refundCharge } from './refund-charge.ts';

/**
 * Ends a payment that cannot succeed, when an operator rejects its `OrderPlaced`. What the bank has charged is announced with the
 * rejection, and refunded by {@link refundRejected}.
 *
 * @throws if the bank may have charged and no result is stored: only the bank knows
 */
export async function rejectPayment(
  table: Table,
  invoice: Invoice,
  { effects, reason }: RejectedContext,
): Promise<Commit> {
  const payment = paymentOfRow(await table.get(paymentKey(invoice.orderId), { consistent: true }));
  if (payment !== undefined && payment.status !== 'charging' && payment.status !== 'cancelling') return {};
  const rejected: DecidedPayment = {
    ...invoice,
    status: 'rejected',
    chargeId: chargeIdOf(effects.charge),
    reason,
  };
  return decide(rejected, payment?.status);
}

function chargeIdOf(charge: PastEffect | undefined): string | undefined {
  if (charge === undefined || charge.state === 'nothing-happened') return undefined;
  if (charge.state !== 'completed') {
    throw new Error(
      `The bank may have charged under the key ${charge.idempotencyKey}, and its answer is not stored. Ask it, then resolve the message with \`messages resolve --commit\`.`,
    );
  }
  const result = charge.result as ChargeResult;
  return result.outcome === 'captured' ? result.chargeId : undefined;
}

/** Refunds the charge of a payment that was rejected. */
export function refundRejected({ bank }: { readonly bank: Bank }): Handler {
  return leased(PaymentRejected, async ({ sequence, data: { chargeId, ...payment } }, ctx) => {
    if (chargeId === undefined) return;
    const refunded = await refundCharge(bank, { ...payment, chargeId }, ctx);
    await ctx.commit(decide(refunded, 'rejected', { version: sequence }));
  });
}
