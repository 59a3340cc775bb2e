import type { ProcessingConfig, QueueConfig } from '../base/consumer-config.ts';
import { MailroomError } from '../base/errors.ts';
import { requireGiven } from '../base/given-names.ts';
import { type ConsumerContext, contextParts, type ProcessingDeps } from '../consume/consumer-context.ts';
import type { Handler } from '../consume/handler.ts';
import type { SettlingStore } from '../consume/settling-store.ts';
import { type InboxProcessor, type ProcessorDeps, processorIn } from '../sources/inbox-processor.ts';
import { type ConsumerHandler, consumerIn } from '../sources/sqs/consumer.ts';
import type { Queue } from '../sources/sqs/queue.ts';
import { mysqlInbox } from '../store/mysql/inbox.ts';
import type { MysqlEvents } from '../store/mysql/inbox-row.ts';
import type { Database } from '../store/sql/database.ts';
import { anyHandlers, DYNAMO_OPTIONS, type MysqlHandler } from './mysql-handlers.ts';

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
 * @throws `BAD_CONSUMER` immediately as `createConsumer` does, and if the consumer or a handler has an order or a `rejected` function
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
  if (Array.isArray(deps.handlers)) refuseOptions(deps.handlers);
  return consumerIn(ctx, { ...deps, handlers: anyHandlers(deps.handlers) }, settlesNothing(deps.config));
}

/** Refuses each request of an operator. */
function settlesNothing({ consumer }: ProcessingConfig): SettlingStore {
  const refuse = (): never => {
    throw new MailroomError(
      'BAD_CONSUMER',
      `The inbox of ${consumer} is in MySQL, where a message cannot be ended with a commit. Nothing was changed.`,
    );
  };
  const change = async () => refuse();
  return {
    inboxChanges: { read: change, allow: change, lastSequence: change, raise: change },
    checkWrites: () => {},
    committing: refuse,
  };
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
 * @throws `BAD_ARGUMENT` if `handlerTimeoutMs` is below 10,000, `BAD_CONSUMER` if the consumer has an order
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
  const allowed = new WeakSet<object>();
  const inboxHandler = (handler: MysqlHandler<Tx> | readonly MysqlHandler<Tx>[]) => {
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

function mysqlContext<Tx>(
  deps: Pick<MysqlConsumerDeps<Tx>, 'database' | 'outbox'> &
    ProcessingDeps & { readonly config: ProcessingConfig },
): ConsumerContext {
  const { config } = deps;
  const { consumer, order } = config;
  if (order !== undefined) {
    throw new MailroomError(
      'BAD_CONSUMER',
      `Consumer ${consumer} has the order ${order.mode}, which an inbox in MySQL does not have. Remove its order, or keep its inbox in DynamoDB.`,
    );
  }
  const { database, outbox, redact } = deps;
  const parts = contextParts(deps);
  const settings = { ...config, clock: parts.clock, random: parts.random, redact };
  return { ...parts, inbox: mysqlInbox({ settings, database, outbox }) };
}

/** @throws `BAD_CONSUMER` if a handler was made for an inbox in DynamoDB, with an option that would do nothing */
function refuseOptions(handlers: readonly object[]): void {
  for (const handler of handlers) {
    const { definition, ...options } = Object(handler);
    const option = DYNAMO_OPTIONS.find((name) => options[name] !== undefined);
    if (option === undefined) continue;
    throw new MailroomError(
      'BAD_CONSUMER',
      `The handler of ${definition?.type} has the option ${option}, which an inbox in MySQL does not have. Remove it, or keep the inbox in DynamoDB.`,
    );
  }
}
