import { LambdaClient } from '@aws-sdk/client-lambda';
import { lambdaConsumer } from '../../runtime/index.ts';
import { OrderExpired } from '../events.ts';
import { requiredEnv } from '../required-env.ts';
import { lambdaBank } from './bank-client.ts';
import { cancelPayment } from './cancel-payment.ts';
import { chargeOrder } from './charge-order.ts';
import { refundRejected } from './reject-payment.ts';

const bank = lambdaBank({
  client: new LambdaClient({ maxAttempts: 1 }),
  functionName: requiredEnv('BANK_FUNCTION_NAME'),
});

/** The consumer `payments`. */
export const handler = lambdaConsumer(({ table }) => [
  chargeOrder({ bank, table }),
  cancelPayment({ bank, table }),
  cancelPayment({ bank, table }, OrderExpired),
  refundRejected({ bank }),
]);
