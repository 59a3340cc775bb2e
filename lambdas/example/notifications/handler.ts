import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SQSClient } from '@aws-sdk/client-sqs';
import {
  createConsumer,
  dynamoTable,
  readConsumerConfig,
  sqsQueue,
  systemClock,
} from '../../runtime/index.ts';
import { storedEmails } from './email-provider.ts';
import { sendReceipt } from './send-receipt.ts';

const config = readConsumerConfig(process.env);
const table = dynamoTable({ client: new DynamoDBClient({}), tableName: config.tableName });
const queue = sqsQueue({ client: new SQSClient({}), queueUrl: config.queueUrl });
const emails = storedEmails({ table, clock: systemClock });

/** The consumer `notifications`. */
export const handler = createConsumer({ config, table, queue, handlers: [sendReceipt({ emails })] });
