import {
  busName,
  type ConfigOf,
  type Environment,
  flag,
  integer,
  names,
  settings,
  text,
} from './config-codec.ts';
import { type EventOrder, orderOfText, orderText } from './order.ts';
import { DELAY_MAX_MS } from './retry-schedule.ts';
import { DAY_MS } from './units.ts';

/** The longest retention that a consumer can have, days. */
export const INBOX_RETENTION_MAX_DAYS = 3_650;

/** Settings of an outbox in DynamoDB. */
export interface TableConfig {
  /** The name of the Mailroom table. */
  readonly tableName: string;
  /** The number of shards over which the events of one minute are spread, 1 to 256: the shard is one byte of the event id. */
  readonly shards: number;
  /** The time during which a new outbox row is reserved for the stream relay, before the sweep may claim it, milliseconds. */
  readonly bornLeaseMs: number;
}

/** Settings of a service, wherever its events are stored. */
export interface ServiceConfig {
  /** The service's name: the `source` of the events that it owns. */
  readonly service: string;
  /**
   * The types of the service's events that this function may write; any other type or source is refused with `NOT_DECLARED`.
   *
   * @default every type of the service, for tests, of which those that name no service pass `any`: no limit. The constructs always
   * set a list, and `readProducerConfig` requires it
   */
  readonly publishes?: readonly string[] | 'any' | undefined;
}

/** Settings of a service that writes events. */
export interface ProducerConfig extends ServiceConfig, TableConfig {}

/** Settings of a producer that publishes its events at once. */
export interface AtOnceConfig {
  /** The name or ARN of the bus. */
  readonly busName: string;
  /**
   * The length of the producer's turn, from the creation of an event: in it, the transaction, the publish and the mark must end.
   * Milliseconds, 100 to 5,000.
   */
  readonly timeoutMs: number;
  /** The time after which TTL may delete a published row, days. */
  readonly publishedRetentionDays: number;
}

/** The longest turn of a producer, milliseconds: after a producer has crashed, the stream relay waits for the end of its turn. */
export const AT_ONCE_TIMEOUT_MAX_MS = 5_000;

/** Settings of the relay's two functions. */
export interface RelayConfig {
  /** The name of the Mailroom table. */
  readonly tableName: string;
  /** The name or ARN of the bus. */
  readonly busName: string;
  /** The number of shards over which the events of one minute are spread, 1 to 256. */
  readonly shards: number;
  /** The duration of a relay's claim on a row, milliseconds. */
  readonly claimLeaseMs: number;
  /** The timeout of one PutEvents call, milliseconds. */
  readonly publishTimeoutMs: number;
  /** The number of the event's own failures after which it becomes DEAD. */
  readonly maxAttempts: number;
  /** The time after which TTL may delete a published row, days. */
  readonly publishedRetentionDays: number;
  /** The interval at which the most recent minutes are swept, milliseconds; below one minute, the sweep loops within its invocation. */
  readonly sweepEveryMs: number;
  /**
   * The sources that the relay publishes; events from any other source stay PENDING.
   *
   * @default no limit, for tests; the constructs always set it, and `readRelayConfig` requires it
   */
  readonly sources?: readonly string[] | undefined;
  /** Each pass of the sweep also reads the running minute and the one before it, so that scheduled events are up to a minute late. @default false */
  readonly punctual?: boolean | undefined;
}

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
  /** The receives after which SQS moves a message to the dead-letter queue. Required with a strict order. @default unknown */
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

const tableFields = {
  tableName: text('MAILROOM_TABLE'),
  shards: integer('MAILROOM_SHARDS', 1, 256),
  bornLeaseMs: integer('MAILROOM_BORN_LEASE_MS', 1_000, 900_000),
};

const serviceFields = { service: text('MAILROOM_SERVICE'), publishes: names('MAILROOM_PUBLISHES') };

const producerFields = { ...serviceFields, ...tableFields };

/** Settings of a function that writes events. */
export const producerSettings = settings<ProducerConfig>(producerFields);

/** Additional settings of a function that publishes at once. */
export const atOnceSettings = settings<AtOnceConfig>(
  {
    busName: busName('MAILROOM_BUS'),
    timeoutMs: integer('MAILROOM_AT_ONCE_TIMEOUT_MS', 100, AT_ONCE_TIMEOUT_MAX_MS),
    publishedRetentionDays: integer('MAILROOM_PUBLISHED_RETENTION_DAYS', 1, 3_650),
  },
  "pass publishAtOnce to the producer's mailroom.addProducer call, or set the variable yourself.",
);

/** Settings of the relay's two functions. */
export const relaySettings = settings<RelayConfig>({
  tableName: text('MAILROOM_TABLE'),
  busName: busName('MAILROOM_BUS'),
  shards: integer('MAILROOM_SHARDS', 1, 256),
  claimLeaseMs: integer('MAILROOM_CLAIM_LEASE_MS', 1_000, 900_000),
  publishTimeoutMs: integer('MAILROOM_PUBLISH_TIMEOUT_MS', 100, 60_000),
  maxAttempts: integer('MAILROOM_MAX_ATTEMPTS', 1, 1_000),
  publishedRetentionDays: integer('MAILROOM_PUBLISHED_RETENTION_DAYS', 1, 3_650),
  sweepEveryMs: integer('MAILROOM_SWEEP_EVERY_MS', 1_000, DAY_MS),
  sources: names('MAILROOM_SOURCES'),
  punctual: { ...flag('MAILROOM_PUNCTUAL'), optional: true },
});

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

/** Settings of a consumer's function whose inbox is in PostgreSQL. */
export const postgresConsumerSettings = settings<ProcessingConfig & QueueConfig>({
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
export const inboxSettings = settings<InboxConfig>(
  {
    ...ownFields,
    tableName: { ...tableFields.tableName, origin: "It is the name of the Mailroom's table" },
    shards: { ...tableFields.shards, origin: OF_MAILROOM },
    bornLeaseMs: { ...tableFields.bornLeaseMs, origin: OF_MAILROOM },
  },
  SOURCES_PAGE,
);

const postgresInboxSettings = settings<ProcessingConfig>(ownFields, SOURCES_PAGE);

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

/** Settings of the scheduled audit. */
export const auditSettings = settings({
  tableName: text('MAILROOM_TABLE'),
  /** The period that each audit covers, back from its start, milliseconds. */
  sinceMs: integer('MAILROOM_AUDIT_SINCE_MS', 60_000, DAY_MS),
  /** The interval between audits, and the period for which deliveries are counted, milliseconds. */
  everyMs: integer('MAILROOM_AUDIT_EVERY_MS', 60_000, DAY_MS),
});

/** Settings of the scheduled audit, as its function reads them. */
export type AuditConfig = ConfigOf<typeof auditSettings>;

/** Settings of the scheduled heartbeat, which writes one event per run. */
export const heartbeatSettings = settings<ProducerConfig & { readonly everyMs: number }>({
  ...producerFields,
  /** The interval between heartbeats, milliseconds. */
  everyMs: integer('MAILROOM_HEARTBEAT_EVERY_MS', 60_000, DAY_MS),
});

/** Settings of the scheduled heartbeat, as its function reads them. */
export type HeartbeatConfig = ConfigOf<typeof heartbeatSettings>;

/**
 * Reads a producer's settings from its environment.
 *
 * @throws `BAD_CONFIG`, naming the variable, if one is missing or out of range
 *
 * @example
 * ```ts
 * const config = readProducerConfig(process.env);
 * ```
 */
export function readProducerConfig(env: Environment): ProducerConfig {
  return producerSettings.read(env);
}

/**
 * Reads the settings of a producer that publishes at once from its environment.
 *
 * @throws `BAD_CONFIG`, naming the variable, if one is missing or out of range
 */
export function readAtOnceConfig(env: Environment): AtOnceConfig {
  return atOnceSettings.read(env);
}

/**
 * Reads the relay's settings from its environment.
 *
 * @throws `BAD_CONFIG`, naming the variable, if one is missing or out of range
 */
export function readRelayConfig(env: Environment): RelayConfig {
  return relaySettings.read(env);
}

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

/** As {@link readInboxConfig}, of an inbox in PostgreSQL: without a table, shards and born lease. @throws `BAD_CONFIG`, naming the variable */
export function readPostgresInboxConfig(env: Environment): ProcessingConfig {
  return postgresInboxSettings.read(withDefaults(env));
}

/** As {@link readConsumerConfig}, of a consumer whose inbox is in PostgreSQL. @throws `BAD_CONFIG`, naming the variable */
export function readPostgresConsumerConfig(env: Environment): ProcessingConfig & QueueConfig {
  return postgresConsumerSettings.read(env);
}

function withDefaults(env: Environment): Environment {
  const given = Object.entries(env).filter(([, value]) => value !== undefined);
  return { ...INBOX_DEFAULTS, ...Object.fromEntries(given) };
}
