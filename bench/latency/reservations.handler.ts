import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SQSClient } from '@aws-sdk/client-sqs';
import { OrderPlaced } from '../../lambdas/example/events.ts';
import {
  clientSettings,
  createConsumer,
  dynamoTable,
  readConsumerConfig,
  sqsQueue,
  transactional,
} from '../../lambdas/runtime/index.ts';

const config = readConsumerConfig(process.env);

/** The consumer of the benchmark: writes one row per order. */
export const handler = createConsumer({
  config,
  table: dynamoTable({ client: new DynamoDBClient(clientSettings), tableName: config.tableName }),
  queue: sqsQueue({ client: new SQSClient(clientSettings), queueUrl: config.queueUrl }),
  handlers: [
    transactional(OrderPlaced, async ({ data: { orderId, items } }) => {
      const Item = { PK: `RESERVATION#${orderId}`, SK: 'RESERVATION', orderId, items };
      return { writes: [{ Put: { Item, ConditionExpression: 'attribute_not_exists(PK)' } }] };
    }),
  ],
});
