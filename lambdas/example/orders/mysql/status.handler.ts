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
import { applyReport } from '../database-orders.ts';
import { REPORTS } from '../order-status.ts';
import { MYSQL_ORDERS } from './mysql-orders.ts';

const config = readMysqlConsumerConfig(process.env);
const database = mysql2(mysqlPool(createPool, readMysqlSettings(process.env)));
const outbox = createMysqlOutbox({ config: readProducerConfig(process.env), database });
const orders = { database, outbox, statements: MYSQL_ORDERS };
const { transactional } = mysqlHandlers(database);

/** The consumer `order-status` with its inbox and the orders in MySQL. */
export const handler = createMysqlConsumer({
  config,
  database,
  outbox,
  queue: sqsQueue({ client: new SQSClient(clientSettings), queueUrl: config.queueUrl }),
  handlers: REPORTS.map(({ definition, halves }) =>
    transactional(definition, async (event, { tx }) => {
      const { orderId } = event.data as { readonly orderId: string };
      const reports = halves(event.data);
      if (reports === undefined) return {};
      return { events: await applyReport(orders, tx, event, orderId, reports) };
    }),
  ),
});
