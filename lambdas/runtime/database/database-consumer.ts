import type { ProcessingConfig, QueueConfig } from '../base/consumer-config.ts';
import { requireGiven } from '../base/given-names.ts';
import { type ConsumerContext, contextParts, type ProcessingDeps } from '../consume/consumer-context.ts';
import type { Handler } from '../consume/handler.ts';
import type { Inbox } from '../consume/inbox-port.ts';
import type { SettlingStore } from '../consume/settling-store.ts';
import type { InboxSettings } from '../inbox/inbox.ts';
import { type InboxProcessor, type ProcessorDeps, processorIn } from '../sources/inbox-processor.ts';
import { type ConsumerHandler, consumerIn } from '../sources/sqs/consumer.ts';
import type { Queue } from '../sources/sqs/queue.ts';
import type { Database } from '../store/sql/database.ts';
import type { DatabaseEvents } from '../store/sql/database-outbox.ts';
import { anyHandlers, type DatabaseHandler } from './database-handlers.ts';

/** Dependencies of {@link createPostgresConsumer} or {@link createMysqlConsumer}. */
export interface DatabaseConsumerDeps<Tx> extends ProcessingDeps {
  /** The database that has the tables of `mailroom` and the consumer's own. */
  readonly database: Database<Tx>;
  /** Writes the events of its handlers, from `createPostgresOutbox` or `createMysqlOutbox`. */
  readonly outbox: DatabaseEvents<Tx>;
  /** From `readPostgresConsumerConfig(process.env)` or `readMysqlConsumerConfig(process.env)`. */
  readonly config: ProcessingConfig & QueueConfig;
  /** The consumer's queue. */
  readonly queue: Queue;
  /** One handler per event that the consumer subscribes to. */
  readonly handlers: readonly DatabaseHandler<Tx>[];
}

/** Dependencies of {@link createPostgresInboxProcessor} or {@link createMysqlInboxProcessor}. */
export interface DatabaseProcessorDeps<Tx> extends ProcessorDeps {
  /** The database that has the tables of `mailroom` and the consumer's own. */
  readonly database: Database<Tx>;
  /** Writes the events of its handlers, from `createPostgresOutbox` or `createMysqlOutbox`. */
  readonly outbox: DatabaseEvents<Tx>;
  /** From `readPostgresInboxConfig(process.env)` or `readMysqlInboxConfig(process.env)`. */
  readonly config: ProcessingConfig;
}

type InboxStorage<Tx> = Pick<DatabaseProcessorDeps<Tx>, 'database' | 'outbox' | 'config'>;

/** The part of a consumer that differs from one kind of database to another. */
export interface DatabaseInbox {
  /** Creates the inbox of a consumer. */
  inbox<Tx>(deps: Omit<InboxStorage<Tx>, 'config'> & { readonly settings: InboxSettings }): Inbox;
  /** Creates what makes an operator's changes. */
  settling<Tx>(ctx: ConsumerContext, deps: InboxStorage<Tx>): SettlingStore;
}

/** Creates the Lambda handler of a consumer. @param factory - its function's name, for errors */
export function databaseConsumer<Tx>(
  factory: string,
  store: DatabaseInbox,
  deps: DatabaseConsumerDeps<Tx>,
): ConsumerHandler {
  requireGiven(factory, deps, 'config', 'database', 'outbox', 'queue', 'handlers');
  const ctx = contextOf(store, deps);
  return consumerIn(ctx, { ...deps, handlers: anyHandlers(deps.handlers) }, store.settling(ctx, deps));
}

/** Creates the inbox of a consumer of any source. @param factory - its function's name, for errors */
export function databaseProcessor<Tx>(
  factory: string,
  store: DatabaseInbox,
  deps: DatabaseProcessorDeps<Tx>,
): InboxProcessor<DatabaseHandler<Tx>> {
  requireGiven(factory, deps, 'config', 'database', 'outbox');
  const inbox = processorIn(contextOf(store, deps), deps);
  // Not a new list for one handler: the processor remembers what it has prepared.
  const inboxHandler = (handler: DatabaseHandler<Tx> | readonly DatabaseHandler<Tx>[]) =>
    handler as unknown as Handler | readonly Handler[];
  return {
    consumer: inbox.consumer,
    process: async (message, handler, options) => inbox.process(message, inboxHandler(handler), options),
    handles: (handler) => inbox.handles(inboxHandler(handler)),
  };
}

function contextOf<Tx>(store: DatabaseInbox, deps: InboxStorage<Tx> & ProcessingDeps): ConsumerContext {
  const { config, database, outbox, redact } = deps;
  const parts = contextParts(deps);
  const settings = { ...config, clock: parts.clock, random: parts.random, redact };
  return { ...parts, inbox: store.inbox({ settings, database, outbox }) };
}
