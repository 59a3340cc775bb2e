import { GetSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { Signer } from '@aws-sdk/rds-signer';
import { Pool } from 'pg';
import { clientSettings } from '../base/client-settings.ts';
import { jsonObject } from '../base/json.ts';
import type { PgPool } from './databases.ts';
import type { PostgresSettings } from './postgres-settings.ts';
import { tlsOption } from './postgres-url.ts';

/** A pool of `pg`. */
export interface PostgresPool extends PgPool {
  /** Closes its connections. */
  end(): Promise<void>;
}

/** Connections of one process. A relay uses four. */
const CONNECTIONS_MAX = 5;

/** Below the 30 seconds after which RDS Proxy and a frozen function would find a connection dead, milliseconds. */
const IDLE_MS = 20_000;

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
export function postgresPool(settings: PostgresSettings): PostgresPool {
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

async function passwordOf({ host, port, user, ...how }: PostgresSettings): Promise<string> {
  if (how.iam) return new Signer({ hostname: host, port, username: user }).getAuthToken();
  if (how.secretArn === undefined) return how.password ?? '';
  const client = new SecretsManagerClient(clientSettings);
  const { SecretString } = await client.send(new GetSecretValueCommand({ SecretId: how.secretArn }));
  return String(jsonObject(SecretString ?? '')?.password ?? '');
}
