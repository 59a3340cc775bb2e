import { Client } from 'pg';
import type { DatabaseEngine } from '../../lambdas/runtime/base/database-engine.ts';

/**
 * A commit takes a tenth of a second longer, in which it may not be on the disk: a server that is killed under load then has transactions
 * open, and clients that wait for the answer to COMMIT. In MariaDB, a commit waits that long for others, to write them to the binary log
 * together.
 */
export const SLOW_SERVER: Readonly<Record<DatabaseEngine, Readonly<Record<string, string>>>> = {
  postgres: {},
  mysql: {
    'log-bin': 'binlog',
    'binlog-format': 'ROW',
    'sync-binlog': '1',
    'binlog-commit-wait-count': '1000',
    'binlog-commit-wait-usec': '100000',
  },
};

const SLOW_FUNCTION = `CREATE FUNCTION slow_commit() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.1); RETURN NULL; END'`;

/** Makes the commits of a PostgreSQL as slow, of transactions that write to some tables. @param tables - each with the statements */
export async function slowCommits(url: string, tables: Readonly<Record<string, string>>): Promise<void> {
  const client = new Client(url);
  await client.connect();
  await client.query(SLOW_FUNCTION);
  for (const [table, on] of Object.entries(tables))
    await client.query(
      `CREATE CONSTRAINT TRIGGER slow AFTER ${on} ON ${table} DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow_commit()`,
    );
  await client.end();
}
