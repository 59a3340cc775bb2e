import { type Environment, settings } from '../base/config-codec.ts';
import {
  type DatabaseProducerConfig,
  type DatabaseRelayConfig,
  databaseProducerSettings,
  databaseRelayFields,
} from '../relay/database-config.ts';
import { type DatabaseAddress, readDatabaseAddress } from '../store/sql/database-address.ts';
import { POSTGRES_ADDRESS } from './postgres-url.ts';

/** Settings of a relay of a PostgreSQL database. */
export type PostgresRelayConfig = DatabaseRelayConfig;

const REMEDY = 'deploy the construct that sets it, or set the variable yourself (docs/postgres.md).';

/** Settings of a service that writes events to PostgreSQL. */
export const postgresProducerSettings = databaseProducerSettings(REMEDY);

/** Settings of a relay of a PostgreSQL database. */
export const postgresRelaySettings = settings<PostgresRelayConfig>(databaseRelayFields, REMEDY);

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
export function readPostgresSettings(env: Environment): DatabaseAddress {
  return readDatabaseAddress(POSTGRES_ADDRESS, env);
}
