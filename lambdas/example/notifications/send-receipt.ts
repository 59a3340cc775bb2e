import { type Handler, leased } from '../../runtime/index.ts';
import { PaymentCaptured } from '../events.ts';
import type { EmailProvider } from './email-provider.ts';

/**
 * Sends the customer one e-mail for each payment. It writes nothing itself: the inbox records that the message is processed, and
 * the stored result of the effect identifies the e-mail.
 */
export function sendReceipt(deps: { readonly emails: EmailProvider }): Handler {
  return leased(PaymentCaptured, ({ data: { orderId, customerId, amountCents } }, ctx) =>
    ctx.once('email', (idempotencyKey, signal) =>
      deps.emails.send(
        {
          to: customerId,
          subject: `We have received your payment for order ${orderId}`,
          text: `Thank you. We have charged ${(amountCents / 100).toFixed(2)} for order ${orderId}.`,
          reference: orderId,
          idempotencyKey,
        },
        signal,
      ),
    ),
  );
}
