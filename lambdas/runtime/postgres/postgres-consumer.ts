import type { ProcessingConfig, QueueConfig } from '../base/consumer-config.ts';
import { MailroomError } from '../base/errors.ts';
import { requireGiven } from '../base/given-names.ts';
import { type ConsumerContext, contextParts, type ProcessingDeps } from '../consume/consumer-context.ts';
import type { Handler } from '../consume/handler.ts';
import { type InboxProcessor, type ProcessorDeps, processorIn } from '../sources/inbox-processor.ts';
import { type ConsumerHandler, consumerIn } from '../sources/sqs/consumer.ts';
import type { Queue } from '../sources/sqs/queue.ts';
import { postgresInbox } from '../store/postgres/inbox.ts';
import type { PostgresEvents } from '../store/postgres/inbox-row.ts';
import type { Database } from '../store/postgres/sql.ts';
import { anyHandlers, DYNAMO_OPTIONS, type PostgresHandler } from './postgres-handlers.ts';

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
 * @throws `BAD_CONSUMER` immediately as `createConsumer` does, and if the consumer or a handler has an order or a `rejected` function
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
  if (Array.isArray(deps.handlers)) refuseOptions(deps.handlers);
  return consumerIn(ctx, { ...deps, handlers: anyHandlers(deps.handlers) }, async () => {
    const { consumer } = deps.config;
    const message = `The inbox of ${consumer} is in PostgreSQL, where a message cannot be ended with a commit. Nothing was changed.`;
    return { batchItemFailures: [], settled: { status: 'refused', code: 'BAD_CONSUMER', message } };
  });
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
 * @throws `BAD_ARGUMENT` if `handlerTimeoutMs` is below 10,000, `BAD_CONSUMER` if the consumer has an order
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
  const allowed = new WeakSet<object>();
  const inboxHandler = (handler: PostgresHandler<Tx> | readonly PostgresHandler<Tx>[]) => {
    if (!allowed.has(handler)) refuseOptions([handler].flat());
    allowed.add(handler);
    // Not a new list for one handler: the processor remembers what it has prepared.
    return handler as unknown as Handler | readonly Handler[];
  };
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
  const { config } = deps;
  const { consumer, order } = config;
  if (order !== undefined) {
    throw new MailroomError(
      'BAD_CONSUMER',
      `Consumer ${consumer} has the order ${order.mode}, which an inbox in PostgreSQL does not have. Remove its order, or keep its inbox in DynamoDB.`,
    );
  }
  const { database, outbox, redact } = deps;
  const parts = contextParts(deps);
  const settings = { ...config, clock: parts.clock, random: parts.random, redact };
  return { ...parts, inbox: postgresInbox({ settings, database, outbox }) };
}

/** @throws `BAD_CONSUMER` if a handler was made for an inbox in DynamoDB, with an option that would do nothing */
function refuseOptions(handlers: readonly object[]): void {
  for (const handler of handlers) {
    const { definition, ...options } = Object(handler);
    const option = DYNAMO_OPTIONS.find((name) => options[name] !== undefined);
    if (option === undefined) continue;
    throw new MailroomError(
      'BAD_CONSUMER',
      `The handler of ${definition?.type} has the option ${option}, which an inbox in PostgreSQL does not have. Remove it, or keep the inbox in DynamoDB.`,
    );
  }
}
