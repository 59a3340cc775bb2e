import { lambdaConsumer, systemClock } from '../../runtime/index.ts';
import { storedEmails } from './email-provider.ts';
import { sendCancellation } from './send-cancellation.ts';
import { sendReceipt } from './send-receipt.ts';

/** The consumer `notifications`. */
export const handler = lambdaConsumer(({ table }) => {
  const emails = storedEmails({ table, clock: systemClock });
  return [sendReceipt({ emails }), sendCancellation({ emails })];
});
