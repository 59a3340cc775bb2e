import { SQSClient } from '@aws-sdk/client-sqs';
import { createPool } from 'mysql2/promise';
import { clientSettings, readProducerConfig, sqsQueue } from '../../../runtime/index.ts';
import {
  createMysqlConsumer,
  createMysqlOutbox,
  mysql2,
  mysqlHandlers,
  mysqlPool,
  readMysqlConsumerConfig,
  readMysqlSettings,
} from '../../../runtime/mysql.ts';
import { databaseReports } from '../database-orders.ts';
import { MYSQL_ORDERS } from './mysql-orders.ts';

const config = readMysqlConsumerConfig(process.env);
const database = mysql2(mysqlPool(createPool, readMysqlSettings(process.env)));
const outbox = createMysqlOutbox({ config: readProducerConfig(process.env), database });
const orders = { database, outbox, statements: MYSQL_ORDERS };

/** The consumer `order-status` with its inbox and the orders in MySQL. */
export const handler = createMysqlConsumer({
  config,
  database,
  outbox,
  queue: sqsQueue({ client: new SQSClient(clientSettings), queueUrl: config.queueUrl }),
  handlers: databaseReports(orders, mysqlHandlers(database)),
});
