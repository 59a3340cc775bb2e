import { Pool } from 'pg';
import { clientSettings } from '../base/client-settings.ts';
import type { DatabaseAddress } from '../store/sql/database-address.ts';
import { CONNECTIONS_MAX, IDLE_MS, passwordOf } from '../store/sql/database-password.ts';
import type { PgPool } from './databases.ts';
import { tlsOption } from './postgres-url.ts';

/** A pool of `pg`. */
export interface PostgresPool extends PgPool {
  /** Closes its connections. */
  end(): Promise<void>;
}

/** After this time a connection is replaced, seconds: it may be at a server that the name of the host does not point to any more. */
const LIFETIME_SECONDS = 300;

/**
 * Opens a pool of `pg`. Each connection logs in with a new token of IAM, or with the current password of the secret. It sets no session
 * settings, which would pin connections of RDS Proxy: {@link grantPostgresRole} sets the timeouts on the login.
 *
 * @example
 * ```ts
 * const database = nodePostgres(postgresPool(readPostgresSettings(process.env)));
 * ```
 */
export function postgresPool(settings: DatabaseAddress): PostgresPool {
  const { host, port, database, user } = settings;
  const pool = new Pool({
    host,
    port,
    database,
    user,
    password: () => passwordOf(settings),
    ssl: tlsOption(settings),
    max: CONNECTIONS_MAX,
    connectionTimeoutMillis: clientSettings.requestHandler.requestTimeout,
    idleTimeoutMillis: IDLE_MS,
    maxLifetimeSeconds: LIFETIME_SECONDS,
    keepAlive: true,
  });
  // Without a listener, a connection that the server closes while it is idle would end the process.
  pool.on('error', () => {});
  return pool;
}
