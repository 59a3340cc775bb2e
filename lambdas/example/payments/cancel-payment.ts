import { type Handler, type LeasedContext, leased, type Table } from '../../runtime/index.ts';
import { StockRejected } from '../events.ts';
import type { Bank } from './bank-client.ts';
import {
  announcePayment,
  type DecidedPayment,
  type Payment,
  paymentKey,
  paymentOfRow,
  paymentThatRefused,
  putPayment,
} from './payment.ts';
import { refundCharge } from './refund-charge.ts';

/**
 * Compensates for the charge of an order that inventory has rejected: no money is kept for it.
 *
 * `OrderPlaced` charges at the same time, and the conditions on the payment's row decide which of the two is first. If the row
 * has changed between the read and the commit, the commit is refused with the current row, and this handler continues from it.
 * Statuses only move forward, so this happens at most twice.
 */
export function cancelPayment(deps: { readonly bank: Bank; readonly table: Table }): Handler {
  return leased(StockRejected, async ({ data: { orderId } }, ctx) => {
    let payment = paymentOfRow(await deps.table.get(paymentKey(orderId), { consistent: true }));
    for (;;) {
      try {
        return await cancel(deps.bank, orderId, payment, ctx);
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
  orderId: string,
  payment: Payment | undefined,
  ctx: LeasedContext,
): Promise<void> {
  switch (payment?.status) {
    case undefined: {
      const cancelled: DecidedPayment = { orderId, status: 'cancelled' };
      return ctx.commit({ writes: [putPayment(cancelled)], events: [announcePayment(cancelled)] });
    }
    case 'charging':
      // The bank may already have charged: the handler that called it sees the new status and refunds.
      return ctx.commit({ writes: [putPayment({ ...payment, status: 'cancelling' }, 'charging')] });
    case 'captured': {
      const refunded = await refundCharge(bank, payment, ctx);
      return ctx.commit({ writes: [putPayment(refunded, 'captured')], events: [announcePayment(refunded)] });
    }
    default: // declined: nothing was charged
  }
}
