import type { ProcessingConfig, QueueConfig } from '../base/consumer-config.ts';
import { requireGiven } from '../base/given-names.ts';
import { type ConsumerContext, contextParts, type ProcessingDeps } from '../consume/consumer-context.ts';
import type { Handler } from '../consume/handler.ts';
import { type InboxProcessor, type ProcessorDeps, processorIn } from '../sources/inbox-processor.ts';
import { type ConsumerHandler, consumerIn } from '../sources/sqs/consumer.ts';
import type { Queue } from '../sources/sqs/queue.ts';
import { postgresInbox } from '../store/postgres/inbox.ts';
import type { PostgresEvents } from '../store/postgres/inbox-row.ts';
import type { Database } from '../store/postgres/sql.ts';
import { anyHandlers, type PostgresHandler } from './postgres-handlers.ts';
import { postgresSettling } from './postgres-settling.ts';

/** Dependencies of {@link createPostgresConsumer}. */
export interface PostgresConsumerDeps<Tx> extends ProcessingDeps {
  /** The database that has the schema `mailroom` and the consumer's own tables. */
  readonly database: Database<Tx>;
  /** Writes the events of its handlers, from `createPostgresOutbox`. */
  readonly outbox: PostgresEvents<Tx>;
  /** From `readPostgresConsumerConfig(process.env)`. */
  readonly config: ProcessingConfig & QueueConfig;
  /** The consumer's queue. */
  readonly queue: Queue;
  /** One handler per event that the consumer subscribes to. */
  readonly handlers: readonly PostgresHandler<Tx>[];
}

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
export function createPostgresConsumer<Tx>(deps: PostgresConsumerDeps<Tx>): ConsumerHandler {
  requireGiven('createPostgresConsumer', deps, 'config', 'database', 'outbox', 'queue', 'handlers');
  const ctx = postgresContext(deps);
  return consumerIn(ctx, { ...deps, handlers: anyHandlers(deps.handlers) }, postgresSettling(ctx, deps));
}

/** Dependencies of {@link createPostgresInboxProcessor}. */
export interface PostgresProcessorDeps<Tx> extends ProcessorDeps {
  /** The database that has the schema `mailroom` and the consumer's own tables. */
  readonly database: Database<Tx>;
  /** Writes the events of its handlers, from `createPostgresOutbox`. */
  readonly outbox: PostgresEvents<Tx>;
  /** From `readPostgresInboxConfig(process.env)`. */
  readonly config: ProcessingConfig;
}

/** The inbox of a source in PostgreSQL, for every loop: its handlers are those of `postgresHandlers`. */
export type PostgresInboxProcessor<Tx> = InboxProcessor<PostgresHandler<Tx>>;

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
  deps: PostgresProcessorDeps<Tx>,
): PostgresInboxProcessor<Tx> {
  requireGiven('createPostgresInboxProcessor', deps, 'config', 'database', 'outbox');
  const inbox = processorIn(postgresContext(deps), deps);
  // Not a new list for one handler: the processor remembers what it has prepared.
  const inboxHandler = (handler: PostgresHandler<Tx> | readonly PostgresHandler<Tx>[]) =>
    handler as unknown as Handler | readonly Handler[];
  return {
    consumer: inbox.consumer,
    process: async (message, handler, options) => inbox.process(message, inboxHandler(handler), options),
    handles: (handler) => inbox.handles(inboxHandler(handler)),
  };
}

function postgresContext<Tx>(
  deps: Pick<PostgresConsumerDeps<Tx>, 'database' | 'outbox'> &
    ProcessingDeps & { readonly config: ProcessingConfig },
): ConsumerContext {
  const { config, database, outbox, redact } = deps;
  const parts = contextParts(deps);
  const settings = { ...config, clock: parts.clock, random: parts.random, redact };
  return { ...parts, inbox: postgresInbox({ settings, database, outbox }) };
}
