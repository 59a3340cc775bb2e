import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SQSClient } from '@aws-sdk/client-sqs';
import { createConsumer, dynamoTable, readConsumerConfig, sqsQueue } from '../../runtime/index.ts';
import { reserveStock } from './reserve-stock.ts';

const config = readConsumerConfig(process.env);
const table = dynamoTable({ client: new DynamoDBClient({}), tableName: config.tableName });
const queue = sqsQueue({ client: new SQSClient({}), queueUrl: config.queueUrl });

/** The consumer `inventory`. */
export const handler = createConsumer({ config, table, queue, handlers: [reserveStock({ table })] });
