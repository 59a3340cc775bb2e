import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SQSClient } from '@aws-sdk/client-sqs';
import {
  clientSettings,
  createConsumer,
  dynamoTable,
  readConsumerConfig,
  sqsQueue,
} from '../../runtime/index.ts';
import { orderStatusHandlers } from './order-status.ts';

const config = readConsumerConfig(process.env);
const table = dynamoTable({ client: new DynamoDBClient(clientSettings), tableName: config.tableName });
const queue = sqsQueue({ client: new SQSClient(clientSettings), queueUrl: config.queueUrl });

/** The consumer `order-status`. */
export const handler = createConsumer({ config, table, queue, handlers: orderStatusHandlers });
