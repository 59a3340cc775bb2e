import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { LambdaClient } from '@aws-sdk/client-lambda';
import { SQSClient } from '@aws-sdk/client-sqs';
import {
  clientSettings,
  createConsumer,
  dynamoTable,
  readConsumerConfig,
  sqsQueue,
} from '../../runtime/index.ts';
import { requiredEnv } from '../required-env.ts';
import { lambdaBank } from './bank.ts';
import { chargeOrder } from './charge-order.ts';

const config = readConsumerConfig(process.env);
const table = dynamoTable({ client: new DynamoDBClient(clientSettings), tableName: config.tableName });
const queue = sqsQueue({ client: new SQSClient(clientSettings), queueUrl: config.queueUrl });
const bank = lambdaBank({
  client: new LambdaClient({ maxAttempts: 1 }),
  functionName: requiredEnv('BANK_FUNCTION_NAME'),
});

/** The consumer `payments`. */
export const handler = createConsumer({ config, table, queue, handlers: [chargeOrder({ bank })] });
