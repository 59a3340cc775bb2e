import type { ProcessingConfig, QueueConfig } from '../base/consumer-config.ts';
import { requireGiven } from '../base/given-names.ts';
import { type ConsumerContext, contextParts, type ProcessingDeps } from '../consume/consumer-context.ts';
import type { Handler } from '../consume/handler.ts';
import { type InboxProcessor, type ProcessorDeps, processorIn } from '../sources/inbox-processor.ts';
import { type ConsumerHandler, consumerIn } from '../sources/sqs/consumer.ts';
import type { Queue } from '../sources/sqs/queue.ts';
import { mysqlInbox } from '../store/mysql/inbox.ts';
import type { MysqlEvents } from '../store/mysql/inbox-row.ts';
import type { Database } from '../store/sql/database.ts';
import { anyHandlers, type MysqlHandler } from './mysql-handlers.ts';
import { mysqlSettling } from './mysql-settling.ts';

/** Dependencies of {@link createMysqlConsumer}. */
export interface MysqlConsumerDeps<Tx> extends ProcessingDeps {
  /** The database that has the schema `mailroom` and the consumer's own tables. */
  readonly database: Database<Tx>;
  /** Writes the events of its handlers, from `createMysqlOutbox`. */
  readonly outbox: MysqlEvents<Tx>;
  /** From `readMysqlConsumerConfig(process.env)`. */
  readonly config: ProcessingConfig & QueueConfig;
  /** The consumer's queue. */
  readonly queue: Queue;
  /** One handler per event that the consumer subscribes to. */
  readonly handlers: readonly MysqlHandler<Tx>[];
}

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
export function createMysqlConsumer<Tx>(deps: MysqlConsumerDeps<Tx>): ConsumerHandler {
  requireGiven('createMysqlConsumer', deps, 'config', 'database', 'outbox', 'queue', 'handlers');
  const ctx = mysqlContext(deps);
  return consumerIn(ctx, { ...deps, handlers: anyHandlers(deps.handlers) }, mysqlSettling(ctx, deps));
}

/** Dependencies of {@link createMysqlInboxProcessor}. */
export interface MysqlProcessorDeps<Tx> extends ProcessorDeps {
  /** The database that has the schema `mailroom` and the consumer's own tables. */
  readonly database: Database<Tx>;
  /** Writes the events of its handlers, from `createMysqlOutbox`. */
  readonly outbox: MysqlEvents<Tx>;
  /** From `readMysqlInboxConfig(process.env)`. */
  readonly config: ProcessingConfig;
}

/** The inbox of a source in MySQL, for every loop: its handlers are those of `mysqlHandlers`. */
export type MysqlInboxProcessor<Tx> = InboxProcessor<MysqlHandler<Tx>>;

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
export function createMysqlInboxProcessor<Tx>(deps: MysqlProcessorDeps<Tx>): MysqlInboxProcessor<Tx> {
  requireGiven('createMysqlInboxProcessor', deps, 'config', 'database', 'outbox');
  const inbox = processorIn(mysqlContext(deps), deps);
  // Not a new list for one handler: the processor remembers what it has prepared.
  const inboxHandler = (handler: MysqlHandler<Tx> | readonly MysqlHandler<Tx>[]) =>
    handler as unknown as Handler | readonly Handler[];
  return {
    consumer: inbox.consumer,
    process: async (message, handler, options) => inbox.process(message, inboxHandler(handler), options),
    handles: (handler) => inbox.handles(inboxHandler(handler)),
  };
}

function mysqlContext<Tx>(
  deps: Pick<MysqlConsumerDeps<Tx>, 'database' | 'outbox'> &
    ProcessingDeps & { readonly config: ProcessingConfig },
): ConsumerContext {
  const { config, database, outbox, redact } = deps;
  const parts = contextParts(deps);
  const settings = { ...config, clock: parts.clock, random: parts.random, redact };
  return { ...parts, inbox: mysqlInbox({ settings, database, outbox }) };
}
