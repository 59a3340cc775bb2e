import { type Handler, leased } from '../../runtime/index.ts';
import { OrderCancelled } from '../events.ts';
import type { EmailProvider } from './email-provider.ts';

const REASONS = {
  'out-of-stock': 'some of the items are out of stock',
  'payment-declined': 'your bank declined the payment',
  'payment-failed': 'the payment failed',
  'not-paid-in-time': 'the order was not paid in time',
} as const;

/**
 * Sends the customer one e-mail for each cancelled order, with the refund or the fact that there was no charge. A customer who was
 * charged in the meantime also gets the receipt; the order of the two e-mails is not guaranteed.
 */
export function sendCancellation(deps: { readonly emails: EmailProvider }): Handler {
  return leased(OrderCancelled, ({ data: { orderId, customerId, reason, refundedCents } }, ctx) =>
    ctx.once('email', (idempotencyKey, signal) =>
      deps.emails.send(
        {
          to: customerId,
          subject: `We have cancelled your order ${orderId}`,
          text: `We are sorry: ${REASONS[reason]}. ${moneyText(refundedCents)}`,
          reference: orderId,
          idempotencyKey,
        },
        signal,
      ),
    ),
  );
}

function moneyText(refundedCents: number): string {
  return refundedCents > 0
    ? `We have refunded ${(refundedCents / 100).toFixed(2)} to you.`
    : 'You have not been charged.';
}
