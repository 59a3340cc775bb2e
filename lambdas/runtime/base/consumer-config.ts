import { type ServiceConfig, serviceFields, type TableConfig, tableFields } from './config.ts';
import { type Environment, flag, integer, settings, text } from './config-codec.ts';
import { type EventOrder, orderOfText, orderText } from './order.ts';
import { DELAY_MAX_MS } from './retry-schedule.ts';

/** The longest retention that a consumer can have, days. */
export const INBOX_RETENTION_MAX_DAYS = 3_650;

/** Settings of a consumer, whatever its source and its store. A consumer may also write events. */
export interface ProcessingConfig extends ServiceConfig {
  /** The consumer's name. It is part of the key of its inbox rows, so it must never change. */
  readonly consumer: string;
  /** The duration of a claim on a message, unless renewed, milliseconds. */
  readonly leaseMs: number;
  /** The number of attempts after which a message is rejected. */
  readonly maxAttempts: number;
  /** The maximum delay before the second attempt, milliseconds; each further delay is four times as long. */
  readonly retryFirstMs: number;
  /** The maximum delay between two attempts, milliseconds. */
  readonly retryLongestMs: number;
  /** The time after which TTL may delete a processed inbox row, days. */
  readonly inboxRetentionDays: number;
  /**
   * The start of this inbox, epoch milliseconds: older messages may have been processed under an earlier name of the consumer.
   *
   * @default the consumer has no earlier name
   */
  readonly inboxSince?: number | undefined;
  /** The order in which it applies the events that carry a `sequence`. @default none */
  readonly order?: EventOrder | undefined;
  /** The receives after which SQS moves a message to the dead-letter queue. Required with a strict order; with a concurrency, they last for longer waits. @default unknown */
  readonly maxReceives?: number | undefined;
}

/** Settings of a consumer's queue in SQS. */
export interface QueueConfig {
  /** The URL of the consumer's queue. */
  readonly queueUrl: string;
  /** The queue's visibility timeout, milliseconds. */
  readonly visibilityTimeoutMs: number;
  /** True if the queue has senders other than the rules of Mailroom, which send no heartbeat to it. @default false */
  readonly existingQueue?: boolean | undefined;
}

/** Settings of an inbox in DynamoDB whose messages do not come from an SQS queue of Mailroom. */
export interface InboxConfig extends ProcessingConfig, TableConfig {}

/** Settings of a consumer's function: its queue is in SQS, and its inbox in DynamoDB. */
export interface ConsumerConfig extends InboxConfig, QueueConfig {}

const processingFields = {
  ...serviceFields,
  consumer: text('MAILROOM_CONSUMER'),
  leaseMs: integer('MAILROOM_LEASE_MS', 1_000, 43_200_000),
  maxAttempts: integer('MAILROOM_MAX_ATTEMPTS', 1, 1_000),
  retryFirstMs: integer('MAILROOM_RETRY_FIRST_MS', 0, DELAY_MAX_MS),
  retryLongestMs: integer('MAILROOM_RETRY_LONGEST_MS', 0, DELAY_MAX_MS),
  inboxRetentionDays: integer('MAILROOM_INBOX_RETENTION_DAYS', 1, INBOX_RETENTION_MAX_DAYS),
  inboxSince: { ...integer('MAILROOM_INBOX_SINCE', 0, Number.MAX_SAFE_INTEGER), optional: true },
  order: {
    env: 'MAILROOM_ORDER',
    parse: orderOfText,
    format: orderText,
    expected: 'strict:block, strict:skip, latest, or latest:group',
    optional: true,
  },
  maxReceives: { ...integer('MAILROOM_MAX_RECEIVES', 1, 1_000), optional: true },
};

const queueFields = {
  queueUrl: text('MAILROOM_QUEUE_URL'),
  visibilityTimeoutMs: integer('MAILROOM_VISIBILITY_TIMEOUT_MS', 0, 43_200_000),
  existingQueue: { ...flag('MAILROOM_EXISTING_QUEUE'), optional: true },
};

/** Settings of a consumer's function. */
export const consumerSettings = settings<ConsumerConfig>({
  ...processingFields,
  ...tableFields,
  ...queueFields,
});

/** Settings of a consumer's function whose inbox is in a database of SQL. */
const sqlConsumerSettings = settings<ProcessingConfig & QueueConfig>({
  ...processingFields,
  ...queueFields,
});

const OF_MAILROOM =
  'It has the value that it has in the functions of the Mailroom, and is needed because MAILROOM_PUBLISHES names events';

const ownFields = {
  ...processingFields,
  consumer: {
    ...processingFields.consumer,
    origin: 'It is a name of your choice, which must never change',
  },
  service: {
    ...processingFields.service,
    origin: 'It is the service of the consumer, the source of its events',
  },
};

const SOURCES_PAGE = 'docs/sources.md lists all variables.';

/** Settings of an inbox without a queue of Mailroom. */
const inboxSettings = settings<InboxConfig>(
  {
    ...ownFields,
    tableName: { ...tableFields.tableName, origin: "It is the name of the Mailroom's table" },
    shards: { ...tableFields.shards, origin: OF_MAILROOM },
    bornLeaseMs: { ...tableFields.bornLeaseMs, origin: OF_MAILROOM },
  },
  SOURCES_PAGE,
);

const sqlInboxSettings = settings<ProcessingConfig>(ownFields, SOURCES_PAGE);

/** The variables that an inbox without a queue need not have: the defaults of `InboxConsumer`. */
const INBOX_DEFAULTS: Environment = {
  MAILROOM_PUBLISHES: '[]',
  MAILROOM_LEASE_MS: '30000',
  MAILROOM_MAX_ATTEMPTS: '10',
  MAILROOM_RETRY_FIRST_MS: '2000',
  MAILROOM_RETRY_LONGEST_MS: '900000',
  MAILROOM_INBOX_RETENTION_DAYS: '35',
};

/** The settings of an outbox into which a consumer that publishes nothing cannot write. */
const NO_OUTBOX: Environment = { MAILROOM_SHARDS: '1', MAILROOM_BORN_LEASE_MS: '30000' };

/**
 * Reads a consumer's settings from its environment.
 *
 * @throws `BAD_CONFIG`, naming the variable, if one is missing or out of range
 *
 * @example
 * ```ts
 * const config = readConsumerConfig(process.env);
 * ```
 */
export function readConsumerConfig(env: Environment): ConsumerConfig {
  return consumerSettings.read(env);
}

/**
 * Reads the settings of an inbox without a queue of Mailroom from its environment: `MAILROOM_CONSUMER`, `MAILROOM_SERVICE` and `MAILROOM_TABLE`, with
 * `MAILROOM_PUBLISHES` also `MAILROOM_SHARDS` and `MAILROOM_BORN_LEASE_MS`, and optionally those of a consumer's function that do not
 * concern its queue.
 *
 * @throws `BAD_CONFIG`, naming the variable, if one is missing or out of range
 */
export function readInboxConfig(env: Environment): InboxConfig {
  const config = inboxSettings.read({ ...NO_OUTBOX, ...withDefaults(env) });
  // No default: with more shards than the Mailroom has, a sweep would not read some events at first.
  return config.publishes?.length === 0 ? config : inboxSettings.read(withDefaults(env));
}

/** As {@link readConsumerConfig}, of a consumer whose inbox is in PostgreSQL. @throws `BAD_CONFIG`, naming the variable */
export function readPostgresConsumerConfig(env: Environment): ProcessingConfig & QueueConfig {
  return sqlConsumerSettings.read(env);
}

/** As {@link readInboxConfig}, of an inbox in PostgreSQL: without a table, shards and stream lease. @throws `BAD_CONFIG`, naming the variable */
export function readPostgresInboxConfig(env: Environment): ProcessingConfig {
  return sqlInboxSettings.read(withDefaults(env));
}

/** As {@link readConsumerConfig}, of a consumer whose inbox is in MySQL or MariaDB. @throws `BAD_CONFIG`, naming the variable */
export function readMysqlConsumerConfig(env: Environment): ProcessingConfig & QueueConfig {
  return sqlConsumerSettings.read(env);
}

/** As {@link readInboxConfig}, of an inbox in MySQL or MariaDB: without a table, shards and stream lease. @throws `BAD_CONFIG`, naming the variable */
export function readMysqlInboxConfig(env: Environment): ProcessingConfig {
  return sqlInboxSettings.read(withDefaults(env));
}

function withDefaults(env: Environment): Environment {
  const given = Object.entries(env).filter(([, value]) => value !== undefined);
  return { ...INBOX_DEFAULTS, ...Object.fromEntries(given) };
}
