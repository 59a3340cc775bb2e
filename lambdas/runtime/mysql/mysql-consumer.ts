import {
  type DatabaseConsumerDeps,
  type DatabaseInbox,
  type DatabaseProcessorDeps,
  databaseConsumer,
  databaseProcessor,
} from '../database/database-consumer.ts';
import type { DatabaseHandler } from '../database/database-handlers.ts';
import type { InboxProcessor } from '../sources/inbox-processor.ts';
import type { ConsumerHandler } from '../sources/sqs/consumer.ts';
import { mysqlInbox } from '../store/mysql/inbox.ts';
import { mysqlSettling } from './mysql-settling.ts';

/**
 * Creates the Lambda handler of a consumer whose inbox is in MySQL, with the outcomes, attempts, leases and rejections of
 * `createConsumer`.
 *
 * @throws `BAD_CONSUMER`, `BAD_CONFIG` immediately as `createConsumer` does
 *
 * @example
 * ```ts
 * const config = readMysqlConsumerConfig(process.env);
 * const database = mysql2(createPool(url));
 * const { leased } = mysqlHandlers(database);
 * export const handler = createMysqlConsumer({
 *   config,
 *   database,
 *   outbox: createMysqlOutbox({ config, database }),
 *   queue: sqsQueue({ client: new SQSClient(clientSettings), queueUrl: config.queueUrl }),
 *   handlers: [leased(OrderPlaced, charge)],
 * });
 * ```
 */
export function createMysqlConsumer<Tx>(deps: DatabaseConsumerDeps<Tx>): ConsumerHandler {
  return databaseConsumer('createMysqlConsumer', MYSQL, deps);
}

/** The inbox of a source in MySQL, for every loop: its handlers are those of `mysqlHandlers`. */
export type MysqlInboxProcessor<Tx> = InboxProcessor<DatabaseHandler<Tx>>;

/**
 * Creates the inbox of a consumer that takes its messages from Kafka, Kinesis, JetStream, RabbitMQ or any other source.
 *
 * @throws `BAD_ARGUMENT` if `handlerTimeoutMs` is below 10,000
 *
 * @example
 * ```ts
 * const inbox = createMysqlInboxProcessor({ config: readMysqlInboxConfig(process.env), database, outbox });
 * const answer = await inbox.process({ id: 'orders/0/17', body }, leased(OrderPlaced, charge));
 * ```
 */
export function createMysqlInboxProcessor<Tx>(deps: DatabaseProcessorDeps<Tx>): MysqlInboxProcessor<Tx> {
  return databaseProcessor('createMysqlInboxProcessor', MYSQL, deps);
}

const MYSQL: DatabaseInbox = { inbox: mysqlInbox, settling: mysqlSettling };
