import { type Handler, type LeasedContext, leased, type Table } from '../../runtime/index.ts';
import { OrderExpired, StockRejected } from '../events.ts';
import type { Bank } from './bank-client.ts';
import {
  decide,
  type Ended,
  type Payment,
  paymentKey,
  paymentOfRow,
  paymentThatRefused,
  putPayment,
} from './payment.ts';
import { refundCharge } from './refund-charge.ts';

/**
 * Compensates for the charge of an order that inventory has rejected, or that was not paid in time: no money is kept for it. An order
 * that the bank had charged when `OrderExpired` came was paid in time.
 *
 * `OrderPlaced` charges at the same time, and the conditions on the payment's row decide which of the two is first. If the row
 * has changed between the read and the commit, the commit is refused with the current row, and this handler continues from it.
 * Statuses only move forward, so this happens at most twice.
 */
export function cancelPayment(
  deps: { readonly bank: Bank; readonly table: Table },
  reason: typeof StockRejected | typeof OrderExpired = StockRejected,
): Handler {
  const expired = reason === OrderExpired || undefined;
  return leased(reason, async ({ data: { orderId } }, ctx) => {
    let payment = paymentOfRow(await deps.table.get(paymentKey(orderId), { consistent: true }));
    for (;;) {
      try {
        return await cancel(deps.bank, { orderId, expired }, payment, ctx);
      } catch (error) {
        const found = paymentThatRefused(error);
        if (found === undefined || found.status === payment?.status) throw error;
        payment = found;
      }
    }
  });
}

async function cancel(
  bank: Bank,
  ended: Ended & { readonly orderId: string },
  payment: Payment | undefined,
  ctx: LeasedContext,
): Promise<void> {
  switch (payment?.status) {
    case undefined:
      return ctx.commit(decide({ ...ended, status: 'cancelled' }));
    case 'charging':
      // The bank may already have charged: the handler that called it sees the new status and refunds.
      return ctx.commit({ writes: [putPayment({ ...payment, ...ended, status: 'cancelling' }, 'charging')] });
    case 'captured':
      if (ended.expired) return; // paid in time
      return ctx.commit(decide(await refundCharge(bank, payment, ctx), 'captured', payment));
    default: // declined: nothing was charged
  }
}
