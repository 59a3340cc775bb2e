import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SQSClient } from '@aws-sdk/client-sqs';
import {
  clientSettings,
  createConsumer,
  dynamoTable,
  readConsumerConfig,
  sqsQueue,
  systemClock,
} from '../../runtime/index.ts';
import { storedEmails } from './email-provider.ts';
import { sendReceipt } from './send-receipt.ts';

const config = readConsumerConfig(process.env);
const table = dynamoTable({ client: new DynamoDBClient(clientSettings), tableName: config.tableName });
const queue = sqsQueue({ client: new SQSClient(clientSettings), queueUrl: config.queueUrl });
const emails = storedEmails({ table, clock: systemClock });

/** The consumer `notifications`. */
export const handler = createConsumer({ config, table, queue, handlers: [sendReceipt({ emails })] });
