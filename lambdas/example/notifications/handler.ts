import { lambdaConsumer, systemClock } from '../../runtime/index.ts';
import { storedEmails } from './email-provider.ts';
import { sendReceipt } from './send-receipt.ts';

/** The consumer `notifications`. */
export const handler = lambdaConsumer(({ table }) => [
  sendReceipt({ emails: storedEmails({ table, clock: systemClock }) }),
]);
