import { createPool, type Pool, type PoolConnection, type PoolOptions } from 'mysql2/promise';
import { mysql2 } from '../../../lambdas/runtime/mysql/databases.ts';
import { migrateMysql } from '../../../lambdas/runtime/store/mysql/migrate.ts';
import { TABLES } from '../../../lambdas/runtime/store/mysql/schema.ts';
import type { Database } from '../../../lambdas/runtime/store/sql/database.ts';
import { type MariadbServer, startMariadb } from '../server/mariadb-server.ts';

/**
 * Finds a statement that has waited for a lock for a second: no other one runs for a second. INNODB_TRX is a cache, which is not renewed
 * while it is read more often than each 0.1 s.
 */
export const WAITING =
  "SELECT 1 FROM information_schema.PROCESSLIST WHERE COMMAND = 'Query' AND TIME_MS > 1000";

/** A migrated database on its own server. */
export interface Rig {
  readonly server: MariadbServer;
  readonly pool: Pool;
  readonly database: Database<PoolConnection>;
  /** A pool of this server with other settings. The rig does not close it. */
  readonly poolOf: (options?: PoolOptions) => Pool;
  /** The rows of a query. */
  readonly rows: (text: string, ...values: unknown[]) => Promise<Record<string, unknown>[]>;
  /** Empties every table but that of the migrations. */
  readonly clear: () => Promise<void>;
  readonly close: () => Promise<void>;
}

export async function startRig(name: string, settings: Readonly<Record<string, string>> = {}): Promise<Rig> {
  const server = await startMariadb(name, settings);
  const poolOf = (options: PoolOptions = {}) =>
    createPool({ host: '127.0.0.1', port: server.port, user: 'root', connectionLimit: 30, ...options });
  const pool = poolOf();
  const database = mysql2(pool);
  await migrateMysql(database);
  return {
    server,
    pool,
    database,
    poolOf,
    rows: async (text, ...values) => (await pool.query(text, values))[0] as Record<string, unknown>[],
    clear: async () => {
      for (const table of TABLES)
        if (table !== 'migration') await pool.query(`DELETE FROM mailroom.${table}`);
    },
    close: async () => {
      await pool.end();
      await server.close();
    },
  };
}
