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
import { postgresInbox } from '../store/postgres/inbox.ts';
import { postgresSettling } from './postgres-settling.ts';

/**
 * Creates the Lambda handler of a consumer whose inbox is in PostgreSQL, with the outcomes, attempts, leases and rejections of
 * `createConsumer`.
 *
 * @throws `BAD_CONSUMER`, `BAD_CONFIG` immediately as `createConsumer` does
 *
 * @example
 * ```ts
 * const config = readPostgresConsumerConfig(process.env);
 * const database = nodePostgres(new Pool());
 * const { leased } = postgresHandlers(database);
 * export const handler = createPostgresConsumer({
 *   config,
 *   database,
 *   outbox: createPostgresOutbox({ config, database }),
 *   queue: sqsQueue({ client: new SQSClient(clientSettings), queueUrl: config.queueUrl }),
 *   handlers: [leased(OrderPlaced, charge)],
 * });
 * ```
 */
export function createPostgresConsumer<Tx>(deps: DatabaseConsumerDeps<Tx>): ConsumerHandler {
  return databaseConsumer('createPostgresConsumer', POSTGRES, deps);
}

/** The inbox of a source in PostgreSQL, for every loop: its handlers are those of `postgresHandlers`. */
export type PostgresInboxProcessor<Tx> = InboxProcessor<DatabaseHandler<Tx>>;

/**
 * Creates the inbox of a consumer that takes its messages from Kafka, Kinesis, JetStream, RabbitMQ or any other source.
 *
 * @throws `BAD_ARGUMENT` if `handlerTimeoutMs` is below 10,000
 *
 * @example
 * ```ts
 * const inbox = createPostgresInboxProcessor({ config: readPostgresInboxConfig(process.env), database, outbox });
 * const answer = await inbox.process({ id: 'orders/0/17', body }, leased(OrderPlaced, charge));
 * ```
 */
export function createPostgresInboxProcessor<Tx>(
  deps: DatabaseProcessorDeps<Tx>,
): PostgresInboxProcessor<Tx> {
  return databaseProcessor('createPostgresInboxProcessor', POSTGRES, deps);
}

const POSTGRES: DatabaseInbox = { inbox: postgresInbox, settling: postgresSettling };
