import { MailroomError } from './errors.ts';

/**
 * Settings travel from the constructs to the functions as environment variables. One codec serves both sides:
 * the constructs encode, the functions decode, and both fail with the name of the variable.
 */
interface Field<T extends string | number> {
  readonly env: string;
  readonly parse: (text: string) => T | undefined;
  readonly expected: string;
}

type Fields = Readonly<Record<string, Field<string> | Field<number>>>;

type Config<F extends Fields> = { readonly [K in keyof F]: F[K] extends Field<infer T> ? T : never };

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

const DAY_MS = 86_400_000;

const producerFields = {
  /** The EventBridge `source` of everything this service writes. */
  service: text('MAILROOM_SERVICE'),
  tableName: text('MAILROOM_TABLE'),
  /** Over how many shards the events of one minute spread, 1 to 256: the shard is one byte of the event id. */
  shards: integer('MAILROOM_SHARDS', 1, 256),
  /** How long a new outbox row belongs to the stream path before the sweep may take it. */
  bornLeaseMs: integer('MAILROOM_BORN_LEASE_MS', 1_000, 900_000),
} satisfies Fields;

const relayFields = {
  tableName: text('MAILROOM_TABLE'),
  busName: busName('MAILROOM_BUS'),
  shards: integer('MAILROOM_SHARDS', 1, 256),
  /** How long a claim of the relay holds a row. */
  claimLeaseMs: integer('MAILROOM_CLAIM_LEASE_MS', 1_000, 900_000),
  /** How long one PutEvents call may take. */
  publishTimeoutMs: integer('MAILROOM_PUBLISH_TIMEOUT_MS', 100, 60_000),
  /** After how many failures that are its own an event is DEAD. */
  maxAttempts: integer('MAILROOM_MAX_ATTEMPTS', 1, 1_000),
  /** How long a published row is kept before TTL may delete it. */
  publishedRetentionDays: integer('MAILROOM_PUBLISHED_RETENTION_DAYS', 1, 3_650),
  /** How often the youngest minutes are swept; under a minute the sweep loops inside its invocation. */
  sweepEveryMs: integer('MAILROOM_SWEEP_EVERY_MS', 1_000, DAY_MS),
} satisfies Fields;

const consumerFields = {
  ...producerFields,
  /** The consumer's name: part of the key of its inbox rows, so it must never change. */
  consumer: text('MAILROOM_CONSUMER'),
  queueUrl: text('MAILROOM_QUEUE_URL'),
  /** How long a claim of a message holds it, unless renewed. */
  leaseMs: integer('MAILROOM_LEASE_MS', 1_000, 43_200_000),
  /** The queue's visibility timeout. */
  visibilityTimeoutMs: integer('MAILROOM_VISIBILITY_TIMEOUT_MS', 0, 43_200_000),
  /** After how many attempts a message is rejected. */
  maxAttempts: integer('MAILROOM_MAX_ATTEMPTS', 1, 1_000),
  /** How long a processed inbox row is kept before TTL may delete it. */
  inboxRetentionDays: integer('MAILROOM_INBOX_RETENTION_DAYS', 1, 3_650),
} satisfies Fields;

const auditFields = {
  tableName: text('MAILROOM_TABLE'),
  /** How far back each audit looks. */
  sinceMs: integer('MAILROOM_AUDIT_SINCE_MS', 60_000, DAY_MS),
} satisfies Fields;

/** What a service needs to know to write events. */
export type ProducerConfig = Config<typeof producerFields>;

/** What the relay's two functions need to know. */
export type RelayConfig = Config<typeof relayFields>;

/** What a consumer's function needs to know. It may write events too. */
export type ConsumerConfig = Config<typeof consumerFields>;

/** What the scheduled audit needs to know. */
export type AuditConfig = Config<typeof auditFields>;

type Env = Readonly<Record<string, string | undefined>>;

function encode<F extends Fields>(fields: F, config: Config<F>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [field.env, String(config[name as keyof F])] as const),
  );
}

function decode<F extends Fields>(fields: F, env: Env): Config<F> {
  const entries = Object.entries(fields).map(([name, field]) => {
    const value = env[field.env];
    const parsed = value === undefined ? undefined : field.parse(value);
    if (parsed === undefined) {
      const found = value === undefined ? 'is not set' : `is "${value}"`;
      throw new MailroomError(
        'BAD_CONFIG',
        `Environment variable ${field.env} ${found}; expected ${field.expected}. The Mailroom constructs set it: ` +
          'deploy this function through them, or set it yourself.',
      );
    }
    return [name, parsed] as const;
  });
  return Object.fromEntries(entries) as Config<F>;
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
export function readProducerConfig(env: Env): ProducerConfig {
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
export function readRelayConfig(env: Env): RelayConfig {
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
export function readConsumerConfig(env: Env): ConsumerConfig {
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
export function readAuditConfig(env: Env): AuditConfig {
  return decode(auditFields, env);
}
