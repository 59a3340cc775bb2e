import { type Environment, settings } from '../base/config-codec.ts';
import { MailroomError } from '../base/errors.ts';
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
    claim: {
      env: 'MAILROOM_CLAIM',
      parse: (given) => (given === 'skip-locked' || given === 'token' ? given : undefined),
      format: (given) => given,
      expected: 'skip-locked or token',
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
export function readMysqlProducerConfig(env: Environment): DatabaseProducerConfig {
  return mysqlProducerSettings.read(env);
}

/** @throws `BAD_CONFIG` for a setting that only relays of PostgreSQL have: without it, events would be published in any order, and no error would show that */
export function refuseOrder(name: string, value: unknown): void {
  if (value === undefined) return;
  throw new MailroomError(
    'BAD_CONFIG',
    `${name} is ${JSON.stringify(value)}, but a relay of MySQL publishes in any order. Remove it, and give the consumers that need one an order (docs/mysql.md#inbox).`,
  );
}

/**
 * Reads the settings of a relay from its environment.
 *
 * @throws `BAD_CONFIG`, naming the variable, if one is missing or out of range, or if `MAILROOM_ORDER_BY` is set
 */
export function readMysqlRelayConfig(env: Environment): MysqlRelayConfig {
  refuseOrder('MAILROOM_ORDER_BY', env.MAILROOM_ORDER_BY);
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
