import {
  type EventOf,
  type Handler,
  isMailroomError,
  type LeasedContext,
  leased,
  type Table,
} from '../../runtime/index.ts';
import { OrderPlaced } from '../events.ts';
import type { Bank } from './bank-client.ts';
import {
  type DecidedPayment,
  decide,
  type Invoice,
  type Payment,
  paymentOfRow,
  paymentThatRefused,
  putPayment,
} from './payment.ts';
import { refundCharge } from './refund-charge.ts';
import { rejectPayment } from './reject-payment.ts';

/** The bank takes 10 charges a second, and 10 more after a pause. */
export const BANK_LIMIT = { key: () => 'charges', perSecond: 10, burst: 10 };

/**
 * Charges each placed order once, unless inventory has rejected it or it has expired.
 *
 * The bank is outside DynamoDB, so the charge is a `ctx.once`: it runs under a stable key, and does not run again once its result
 * is stored. Then one transaction stores the payment and its event and sets the message PROCESSED. If the bank declines, that is a
 * decision: the payment is stored as declined and announced like any other result. The message is retried only if the bank did
 * not decide, or the customer has not approved the charge.
 *
 * Inventory may reject the order, and its time to pay may end, at any time. Before `charging` is written, nothing is charged. After
 * that, the last commit finds the payment `cancelling`, and the charge is refunded instead of announced: see {@link Payment}. If the
 * message is rejected, an operator can end the payment: see {@link rejectPayment}.
 */
export function chargeOrder(deps: { readonly bank: Bank; readonly table: Table }): Handler {
  const { bank, table } = deps;
  const charges = async ({ data }: OrderPlacedEvent, ctx: LeasedContext) => {
    const invoice = invoiceOf(data);
    const begun = await begin(table, invoice);
    if (begun.status === 'cancelled') return;
    const decided = await charge(bank, invoice, ctx).catch((error): DecidedPayment => {
      // The customer has not approved the charge, and nobody asks the bank again.
      if (begun.status !== 'cancelling' || !isMailroomError(error, 'RETRY_LATER')) throw error;
      return { orderId: invoice.orderId, status: 'cancelled', expired: begun.expired };
    });

    let { status, expired } = begun;
    if (status !== 'cancelling') {
      try {
        return await ctx.commit(decide(decided, 'charging'));
      } catch (error) {
        const found = paymentThatRefused(error);
        if (found?.status !== 'cancelling') throw error;
        ({ status, expired } = found);
      }
    }
    const ended =
      decided.status === 'captured' ? await refundCharge(bank, { ...decided, expired }, ctx) : decided;
    await ctx.commit(decide(ended, 'cancelling'));
  };
  return leased(OrderPlaced, charges, {
    limit: BANK_LIMIT,
    rejected: ({ data }, ctx) => rejectPayment(table, invoiceOf(data), ctx),
  });
}

type OrderPlacedEvent = EventOf<typeof OrderPlaced>;

function invoiceOf({ orderId, customerId, totalCents }: OrderPlacedEvent['data']): Invoice {
  return { orderId, customerId, amountCents: totalCents };
}

/** Records that the bank is about to be called, or finds the status that this message, `StockRejected` or `OrderExpired` has already written. */
async function begin(table: Table, invoice: Invoice): Promise<Payment> {
  const charging: Payment = { ...invoice, status: 'charging' };
  try {
    await table.write(putPayment(charging));
    return charging;
  } catch (error) {
    const found = isMailroomError(error, 'CONDITION_FAILED') ? paymentOfRow(error.item) : undefined;
    if (found === undefined) throw error;
    return found;
  }
}

async function charge(bank: Bank, invoice: Invoice, ctx: LeasedContext): Promise<DecidedPayment> {
  const result = await ctx.once('charge', (idempotencyKey, signal) =>
    bank.charge({ ...invoice, idempotencyKey }, signal),
  );
  return result.outcome === 'captured'
    ? { ...invoice, status: 'captured', chargeId: result.chargeId }
    : { ...invoice, status: 'declined', reason: result.reason };
}
