import { SQSClient } from '@aws-sdk/client-sqs';
import { clientSettings, readProducerConfig, sqsQueue } from '../../../runtime/index.ts';
import {
  createPostgresConsumer,
  createPostgresOutbox,
  nodePostgres,
  postgresHandlers,
  postgresPool,
  readPostgresConsumerConfig,
  readPostgresSettings,
} from '../../../runtime/postgres.ts';
import { databaseReports } from '../database-orders.ts';
import { POSTGRES_ORDERS } from './postgres-orders.ts';

const config = readPostgresConsumerConfig(process.env);
const database = nodePostgres(postgresPool(readPostgresSettings(process.env)));
const outbox = createPostgresOutbox({ config: readProducerConfig(process.env), database });
const orders = { database, outbox, statements: POSTGRES_ORDERS };

/** The consumer `order-status` with its inbox and the orders in PostgreSQL. */
export const handler = createPostgresConsumer({
  config,
  database,
  outbox,
  queue: sqsQueue({ client: new SQSClient(clientSettings), queueUrl: config.queueUrl }),
  handlers: databaseReports(orders, postgresHandlers(database)),
});
