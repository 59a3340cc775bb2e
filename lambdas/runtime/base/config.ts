import {
  busName,
  type ConfigOf,
  type Environment,
  type Fields,
  flag,
  integer,
  names,
  settings,
  text,
} from './config-codec.ts';
import { DAY_MS } from './units.ts';

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

/** The variables of an outbox in DynamoDB. */
export const tableFields: Fields<TableConfig> = {
  tableName: text('MAILROOM_TABLE'),
  shards: integer('MAILROOM_SHARDS', 1, 256),
  bornLeaseMs: integer('MAILROOM_BORN_LEASE_MS', 1_000, 900_000),
};

/** The variables of a service. */
export const serviceFields: Fields<ServiceConfig> = {
  service: text('MAILROOM_SERVICE'),
  publishes: names('MAILROOM_PUBLISHES'),
};

const producerFields = { ...serviceFields, ...tableFields };

/** Settings of a function that writes events. */
export const producerSettings = settings<ProducerConfig>(producerFields);

/** The variable that only a producer which publishes at once has. */
export const AT_ONCE_VARIABLE = 'MAILROOM_AT_ONCE_TIMEOUT_MS';

/** Additional settings of a function that publishes at once. */
export const atOnceSettings = settings<AtOnceConfig>(
  {
    busName: busName('MAILROOM_BUS'),
    timeoutMs: integer(AT_ONCE_VARIABLE, 100, AT_ONCE_TIMEOUT_MAX_MS),
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
