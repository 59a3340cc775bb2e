import { DELAY_MAX_MS } from './consume/retry-schedule.ts';
import { MailroomError } from './errors.ts';

/**
 * Settings travel from the constructs to the functions as environment variables. One codec serves both sides:
 * the constructs encode, the functions decode, and both fail with the name of the variable.
 */
interface Field<T> {
  readonly env: string;
  readonly parse: (text: string) => T | undefined;
  readonly expected: string;
  /** Whether the variable may be missing. @default false */
  readonly optional?: boolean;
}

type Fields<C> = { readonly [K in keyof C]-?: Field<NonNullable<C[K]>> };

function text(env: string): Field<string> {
  return { env, parse: (value) => (value === '' ? undefined : value), expected: 'a text that is not empty' };
}

/** The name or the ARN of an event bus (EventBridge API reference, PutEventsRequestEntry). */
function busName(env: string): Field<string> {
  return {
    env,
    parse: (value) => (/^[/.\-_A-Za-z0-9:]{1,1600}$/.test(value) ? value : undefined),
    expected: 'the name or the ARN of an event bus',
  };
}

function integer(env: string, min: number, max: number): Field<number> {
  return {
    env,
    parse: (value) => {
      const number = Number(value);
      return value.trim() !== '' && Number.isSafeInteger(number) && number >= min && number <= max
        ? number
        : undefined;
    },
    expected: `a whole number from ${min} to ${max}`,
  };
}

/** Names as a JSON list: an event's type may hold any character that could separate them. */
function names(env: string): Field<readonly string[]> {
  return {
    env,
    parse: (value) => {
      try {
        const list: unknown = JSON.parse(value);
        return Array.isArray(list) && list.every((name) => typeof name === 'string') ? list : undefined;
      } catch {
        return undefined;
      }
    },
    expected: 'a JSON list of texts, such as ["OrderPlaced"]',
  };
}

const DAY_MS = 86_400_000;

/** A function's environment, `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** What a service needs to know to write events. */
export interface ProducerConfig {
  /** Its name: the `source` of the events that it owns. */
  readonly service: string;
  /** The name of the Mailroom table. */
  readonly tableName: string;
  /** Over how many shards the events of one minute spread, 1 to 256: the shard is one byte of the event id. */
  readonly shards: number;
  /** How long a new outbox row belongs to the stream path before the sweep may take it, milliseconds. */
  readonly bornLeaseMs: number;
  /**
   * The types of the service's events that it may write; an event of another type or source is refused with `NOT_DECLARED`.
   *
   * @default no limit: for tests. The constructs always set it, and `readProducerConfig` requires it.
   */
  readonly publishes?: readonly string[] | undefined;
}

/** What the relay's two functions need to know. */
export interface RelayConfig {
  /** The name of the Mailroom table. */
  readonly tableName: string;
  /** The name or the ARN of the bus. */
  readonly busName: string;
  /** Over how many shards the events of one minute spread, 1 to 256. */
  readonly shards: number;
  /** How long a claim of the relay holds a row, milliseconds. */
  readonly claimLeaseMs: number;
  /** How long one PutEvents call may take, milliseconds. */
  readonly publishTimeoutMs: number;
  /** After how many failures that are its own an event is DEAD. */
  readonly maxAttempts: number;
  /** How long a published row is kept before TTL may delete it, days. */
  readonly publishedRetentionDays: number;
  /** How often the youngest minutes are swept, milliseconds; under a minute the sweep loops inside its invocation. */
  readonly sweepEveryMs: number;
  /**
   * The sources that it publishes; an event of another one stays PENDING.
   *
   * @default no limit: for tests. The constructs always set it, and `readRelayConfig` requires it.
   */
  readonly sources?: readonly string[] | undefined;
}

/** What a consumer's function needs to know. It may write events too. */
export interface ConsumerConfig extends ProducerConfig {
  /** The consumer's name: part of the key of its inbox rows, so it must never change. */
  readonly consumer: string;
  /** The queue that its messages come from. */
  readonly queueUrl: string;
  /** How long a claim of a message holds it, unless renewed, milliseconds. */
  readonly leaseMs: number;
  /** The queue's visibility timeout, milliseconds. */
  readonly visibilityTimeoutMs: number;
  /** After how many attempts a message is rejected. */
  readonly maxAttempts: number;
  /** The longest delay before the second attempt, milliseconds; each further delay is four times as long. */
  readonly retryFirstMs: number;
  /** The longest delay between two attempts, milliseconds. */
  readonly retryLongestMs: number;
  /** How long a processed inbox row is kept before TTL may delete it, days. */
  readonly inboxRetentionDays: number;
  /**
   * When the inbox began, epoch milliseconds: what is older may have been processed under an earlier name of the consumer.
   *
   * @default it has no earlier name
   */
  readonly inboxSince?: number | undefined;
}

/** What the scheduled audit needs to know. */
export interface AuditConfig {
  readonly tableName: string;
  /** How far back each audit looks, milliseconds. */
  readonly sinceMs: number;
}

const producerFields: Fields<ProducerConfig> = {
  service: text('MAILROOM_SERVICE'),
  tableName: text('MAILROOM_TABLE'),
  shards: integer('MAILROOM_SHARDS', 1, 256),
  bornLeaseMs: integer('MAILROOM_BORN_LEASE_MS', 1_000, 900_000),
  publishes: names('MAILROOM_PUBLISHES'),
};

const relayFields: Fields<RelayConfig> = {
  tableName: text('MAILROOM_TABLE'),
  busName: busName('MAILROOM_BUS'),
  shards: integer('MAILROOM_SHARDS', 1, 256),
  claimLeaseMs: integer('MAILROOM_CLAIM_LEASE_MS', 1_000, 900_000),
  publishTimeoutMs: integer('MAILROOM_PUBLISH_TIMEOUT_MS', 100, 60_000),
  maxAttempts: integer('MAILROOM_MAX_ATTEMPTS', 1, 1_000),
  publishedRetentionDays: integer('MAILROOM_PUBLISHED_RETENTION_DAYS', 1, 3_650),
  sweepEveryMs: integer('MAILROOM_SWEEP_EVERY_MS', 1_000, DAY_MS),
  sources: names('MAILROOM_SOURCES'),
};

const consumerFields: Fields<ConsumerConfig> = {
  ...producerFields,
  consumer: text('MAILROOM_CONSUMER'),
  queueUrl: text('MAILROOM_QUEUE_URL'),
  leaseMs: integer('MAILROOM_LEASE_MS', 1_000, 43_200_000),
  visibilityTimeoutMs: integer('MAILROOM_VISIBILITY_TIMEOUT_MS', 0, 43_200_000),
  maxAttempts: integer('MAILROOM_MAX_ATTEMPTS', 1, 1_000),
  retryFirstMs: integer('MAILROOM_RETRY_FIRST_MS', 0, DELAY_MAX_MS),
  retryLongestMs: integer('MAILROOM_RETRY_LONGEST_MS', 0, DELAY_MAX_MS),
  inboxRetentionDays: integer('MAILROOM_INBOX_RETENTION_DAYS', 1, 3_650),
  inboxSince: { ...integer('MAILROOM_INBOX_SINCE', 0, Number.MAX_SAFE_INTEGER), optional: true },
};

const auditFields: Fields<AuditConfig> = {
  tableName: text('MAILROOM_TABLE'),
  sinceMs: integer('MAILROOM_AUDIT_SINCE_MS', 60_000, DAY_MS),
};

function encode<C extends object>(fields: Fields<C>, config: C): Record<string, string> {
  return Object.fromEntries(
    entriesOf(fields).flatMap(([name, field]) =>
      config[name] === undefined ? [] : [[field.env, textOf(config[name])]],
    ),
  );
}

function textOf(value: unknown): string {
  return Array.isArray(value) ? JSON.stringify(value) : String(value);
}

function decode<C extends object>(fields: Fields<C>, env: Environment): C {
  const entries = entriesOf(fields).flatMap(([name, field]) => {
    const value = env[field.env];
    if (value === undefined && field.optional) return [];
    const parsed = value === undefined ? undefined : field.parse(value);
    if (parsed === undefined) {
      const found = value === undefined ? 'is not set' : `is "${value}"`;
      throw new MailroomError(
        'BAD_CONFIG',
        `Environment variable ${field.env} ${found}; expected ${field.expected}. Mailroom's constructs set it: ` +
          "give a producer's function to mailroom.addProducer, make a consumer's by InboxConsumer, or set it yourself.",
      );
    }
    return [[name, parsed]];
  });
  return Object.fromEntries(entries) as C;
}

function entriesOf<C extends object>(fields: Fields<C>) {
  return Object.entries(fields) as [keyof C, Fields<C>[keyof C]][];
}

/** The environment of a function that writes events. */
export function encodeProducerConfig(config: ProducerConfig): Record<string, string> {
  return encode(producerFields, config);
}

/**
 * Reads a producer's settings from its environment.
 *
 * @throws `BAD_CONFIG`, naming the variable, when one is missing or out of its range
 *
 * @example
 * ```ts
 * const config = readProducerConfig(process.env);
 * ```
 */
export function readProducerConfig(env: Environment): ProducerConfig {
  return decode(producerFields, env);
}

/** The environment of the relay's functions. */
export function encodeRelayConfig(config: RelayConfig): Record<string, string> {
  return encode(relayFields, config);
}

/**
 * Reads the relay's settings from its environment.
 *
 * @throws `BAD_CONFIG`, naming the variable, when one is missing or out of its range
 */
export function readRelayConfig(env: Environment): RelayConfig {
  return decode(relayFields, env);
}

/** The environment of a consumer's function. */
export function encodeConsumerConfig(config: ConsumerConfig): Record<string, string> {
  return encode(consumerFields, config);
}

/**
 * Reads a consumer's settings from its environment.
 *
 * @throws `BAD_CONFIG`, naming the variable, when one is missing or out of its range
 *
 * @example
 * ```ts
 * const config = readConsumerConfig(process.env);
 * ```
 */
export function readConsumerConfig(env: Environment): ConsumerConfig {
  return decode(consumerFields, env);
}

/** The environment of the audit's function. */
export function encodeAuditConfig(config: AuditConfig): Record<string, string> {
  return encode(auditFields, config);
}

/**
 * Reads the audit's settings from its environment.
 *
 * @throws `BAD_CONFIG`, naming the variable, when one is missing or out of its range
 */
export function readAuditConfig(env: Environment): AuditConfig {
  return decode(auditFields, env);
}
