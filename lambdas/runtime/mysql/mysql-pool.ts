import { clientSettings } from '../base/client-settings.ts';
import { mysqlErrno } from '../store/mysql/mysql-error.ts';
import type { DatabaseAddress } from '../store/sql/database-address.ts';
import { CONNECTIONS_MAX, IDLE_MS, passwordOf } from '../store/sql/database-password.ts';
import type { Mysql2Connection, Mysql2Pool } from './databases.ts';
import { tlsOption } from './mysql-url.ts';

/** The options of a pool of `mysql2` that Mailroom sets. */
export interface MysqlPoolOptions {
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string;
  readonly password?: string;
  /** The answer to the login of an account with IAM authentication: RDS receives the token as a password in clear text, through TLS. */
  readonly authPlugins?: { readonly mysql_clear_password: () => () => Promise<Buffer> };
  readonly ssl?: {
    readonly rejectUnauthorized: true;
    readonly verifyIdentity: boolean;
    readonly ca?: string;
  };
  readonly connectionLimit: number;
  readonly maxIdle: number;
  readonly idleTimeout: number;
  readonly connectTimeout: number;
}

/** A pool that can be closed. */
export interface MysqlPool<Connection extends Mysql2Connection> extends Mysql2Pool<Connection> {
  /** Closes its connections. */
  end(): Promise<void>;
}

/** The server refused the login: ER_ACCESS_DENIED_ERROR. */
const ACCESS_DENIED = 1045;

/**
 * Opens a pool of `mysql2/promise`. Each connection logs in with a new token of IAM, or with the current password of the secret, which is
 * read again if the server refuses it.
 *
 * @param createPool - of `mysql2/promise`
 *
 * @example
 * ```ts
 * import { createPool } from 'mysql2/promise';
 * const database = mysql2(mysqlPool(createPool, readMysqlSettings(process.env)));
 * ```
 */
export function mysqlPool<Connection extends Mysql2Connection>(
  createPool: (options: MysqlPoolOptions) => MysqlPool<Connection>,
  settings: DatabaseAddress,
): MysqlPool<Connection> {
  if (settings.secretArn === undefined) return createPool(optionsOf(settings, settings.password));
  let opened: { readonly password: string; readonly pool: MysqlPool<Connection> } | undefined;
  /** Idle connections of the pool before it close one by one: a transaction may still use one. */
  const open = async () => {
    const password = await passwordOf(settings);
    if (opened?.password !== password) opened = { password, pool: createPool(optionsOf(settings, password)) };
    return opened.pool;
  };
  const inPool = async <T>(run: (pool: MysqlPool<Connection>) => Promise<T>): Promise<T> => {
    const pool = opened?.pool ?? (await open());
    try {
      return await run(pool);
    } catch (error) {
      const current = mysqlErrno(error) === ACCESS_DENIED ? await open() : pool;
      if (current === pool) throw error;
      return await run(current);
    }
  };
  return {
    query: (options) => inPool((pool) => pool.query(options)),
    getConnection: () => inPool((pool) => pool.getConnection()),
    end: async () => opened?.pool.end(),
  };
}

/** A pool removes idle connections only if it may keep fewer than it may open. */
function optionsOf(settings: DatabaseAddress, password: string | undefined): MysqlPoolOptions {
  const { host, port, database, user, iam } = settings;
  const token = async () => Buffer.from(`${await passwordOf(settings)}\0`);
  return {
    host,
    port,
    database,
    user,
    ...(password !== undefined && { password }),
    ...(iam && { authPlugins: { mysql_clear_password: () => token } }),
    ...tlsOption(settings),
    connectionLimit: CONNECTIONS_MAX,
    maxIdle: CONNECTIONS_MAX - 1,
    idleTimeout: IDLE_MS,
    connectTimeout: clientSettings.requestHandler.requestTimeout,
  };
}
