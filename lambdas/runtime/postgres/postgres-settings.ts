import { type Environment, settings } from '../base/config-codec.ts';
import { MailroomError } from '../base/errors.ts';
import { jsonObject } from '../base/json.ts';
import {
  type DatabaseProducerConfig,
  type DatabaseRelayConfig,
  databaseProducerSettings,
  databaseRelayFields,
} from '../relay/database-config.ts';
import { isLoopback, type PostgresTls, readPostgresUrl } from './postgres-url.ts';

/** The address of a PostgreSQL database, and how to log in. */
export interface PostgresSettings extends PostgresTls {
  readonly host: string;
  /** 1 to 65,535. @default 5432 */
  readonly port: number;
  readonly database: string;
  readonly user: string;
  /** For a local database. @default none */
  readonly password?: string | undefined;
  /** The secret of Secrets Manager that contains `password`, and may contain `username`. @default none */
  readonly secretArn?: string | undefined;
  /** Log in with a token of IAM. @default false */
  readonly iam?: boolean | undefined;
}

/** Settings of a relay of a PostgreSQL database. */
export interface PostgresRelayConfig extends DatabaseRelayConfig {
  /**
   * `aggregate` publishes the events of an aggregate one after another, in the order of writing: lock the aggregate before you write. All relays of the
   * database need it. @default in any order
   */
  readonly orderBy?: 'aggregate' | undefined;
}

const REMEDY = 'deploy the construct that sets it, or set the variable yourself (docs/postgres.md).';

/** Settings of a service that writes events to PostgreSQL. */
export const postgresProducerSettings = databaseProducerSettings(REMEDY);

/** Settings of a relay of a PostgreSQL database. */
export const postgresRelaySettings = settings<PostgresRelayConfig>(
  {
    ...databaseRelayFields,
    orderBy: {
      env: 'MAILROOM_ORDER_BY',
      parse: (given) => (given === 'aggregate' ? given : undefined),
      format: (given) => given,
      expected: 'aggregate',
      optional: true,
    },
  },
  REMEDY,
);

/**
 * Reads the settings of a producer from its environment.
 *
 * @throws `BAD_CONFIG`, naming the variable, if one is missing or out of range
 */
export function readPostgresProducerConfig(env: Environment): DatabaseProducerConfig {
  return postgresProducerSettings.read(env);
}

/**
 * Reads the settings of a relay from its environment.
 *
 * @throws `BAD_CONFIG`, naming the variable, if one is missing or out of range
 */
export function readPostgresRelayConfig(env: Environment): PostgresRelayConfig {
  return postgresRelaySettings.read(env);
}

/**
 * Reads the address of the database from `MAILROOM_POSTGRES`: a `postgresql://` URL, or JSON as the constructs write it.
 *
 * @throws `BAD_POSTGRES`, naming the field
 *
 * @example
 * ```ts
 * const pool = postgresPool(readPostgresSettings(process.env));
 * ```
 */
export function readPostgresSettings(env: Environment): PostgresSettings {
  const value = env.MAILROOM_POSTGRES ?? '';
  const given: Record<string, unknown> = value.startsWith('{')
    ? ofJson(value)
    : { ...readPostgresUrl(value, bad) };
  const { host, database, user, password, secretArn, iam, ssl, ca, verifyHost } = given;
  const port = Number(given.port ?? 5_432);
  for (const [name, member] of Object.entries({ host, database, user }))
    if (typeof member !== 'string' || member === '') throw bad(`${name} must be a non-empty string`);
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw bad(`port must be a whole number from 1 to 65535, but it is ${port}`);
  const optional = Object.entries({ password, secretArn, ca }).filter(([, member]) => member !== undefined);
  for (const [name, member] of optional)
    if (typeof member !== 'string' || member === '') throw bad(`${name} must be a non-empty string`);
  for (const [name, member] of Object.entries({ iam, ssl, verifyHost }))
    if (member !== undefined && typeof member !== 'boolean') throw bad(`${name} must be true or false`);
  if (iam === true && secretArn !== undefined) throw bad('iam and secretArn exclude each other');
  const texts = { ...Object.fromEntries(optional), host, port, database, user };
  return { ...texts, iam, verifyHost, ssl: ssl ?? !isLoopback(String(host)) } as PostgresSettings;
}

const MEMBERS = [
  'host',
  'port',
  'database',
  'user',
  'password',
  'secretArn',
  'iam',
  'ssl',
  'ca',
  'verifyHost',
];

function ofJson(value: string): Record<string, unknown> {
  const given = jsonObject(value);
  if (given === undefined) throw bad('it is not a valid JSON object');
  const unknown = Object.keys(given).find((name) => !MEMBERS.includes(name));
  if (unknown !== undefined) throw bad(`the member ${JSON.stringify(unknown)} is not supported`);
  return given;
}

/** Without the value, which may contain a password. */
function bad(problem: string): MailroomError {
  return new MailroomError(
    'BAD_POSTGRES',
    `MAILROOM_POSTGRES cannot be used: ${problem}. Set it to postgresql://<user>@<host>:<port>/<database>, or to JSON with host, port, database, user ` +
      'and iam, secretArn or password.',
  );
}
