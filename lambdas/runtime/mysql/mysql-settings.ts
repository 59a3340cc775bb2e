import { choice, type Environment, settings } from '../base/config-codec.ts';
import {
  type DatabaseProducerConfig,
  type DatabaseRelayConfig,
  databaseProducerSettings,
  databaseRelayFields,
} from '../relay/database-config.ts';
import type { ClaimMode } from '../store/mysql/server-check.ts';
import { type DatabaseAddress, readDatabaseAddress } from '../store/sql/database-address.ts';
import { MYSQL_ADDRESS } from './mysql-url.ts';

/** Settings of a relay of a MySQL or MariaDB database. */
export interface MysqlRelayConfig extends DatabaseRelayConfig {
  /**
   * The way to claim events: `token` on a server without SKIP LOCKED, that is before MySQL 8.0.1 and MariaDB 10.6. There, relays wait for each
   * other's claims, and repeat those that lose a deadlock.
   *
   * @default 'skip-locked'
   */
  readonly claim?: ClaimMode | undefined;
}

const REMEDY = 'deploy the construct that sets it, or set the variable yourself (docs/mysql.md).';

/** Settings of a service that writes events to MySQL. */
export const mysqlProducerSettings = databaseProducerSettings(REMEDY);

/** Settings of a relay of a MySQL database. */
export const mysqlRelaySettings = settings<MysqlRelayConfig>(
  {
    ...databaseRelayFields,
    claim: choice('MAILROOM_CLAIM', ['skip-locked', 'token']),
  },
  REMEDY,
);

/**
 * Reads the settings of a producer from its environment.
 *
 * @throws `BAD_CONFIG`, naming the variable, if one is missing or out of range
 */
export function readMysqlProducerConfig(env: Environment): DatabaseProducerConfig {
  return mysqlProducerSettings.read(env);
}

/**
 * Reads the settings of a relay from its environment.
 *
 * @throws `BAD_CONFIG`, naming the variable, if one is missing or out of range
 */
export function readMysqlRelayConfig(env: Environment): MysqlRelayConfig {
  return mysqlRelaySettings.read(env);
}

/**
 * Reads the address of the database from `MAILROOM_MYSQL`: a `mysql://` URL, or JSON as the constructs write it.
 *
 * @throws `BAD_MYSQL`, naming the field
 *
 * @example
 * ```ts
 * const database = mysql2(mysqlPool(createPool, readMysqlSettings(process.env)));
 * ```
 */
export function readMysqlSettings(env: Environment): DatabaseAddress {
  return readDatabaseAddress(MYSQL_ADDRESS, env);
}
