import { createPool } from 'mysql2/promise';
import { Pool } from 'pg';
import type { DatabaseEngine } from '../../lambdas/runtime/base/database-engine.ts';
import { mysql2 } from '../../lambdas/runtime/mysql/databases.ts';
import { createMysqlOutbox } from '../../lambdas/runtime/mysql/mysql-outbox.ts';
import { nodePostgres } from '../../lambdas/runtime/postgres/databases.ts';
import { createPostgresOutbox } from '../../lambdas/runtime/postgres/postgres-outbox.ts';
import { migrateMysql } from '../../lambdas/runtime/store/mysql/migrate.ts';
import { migratePostgres } from '../../lambdas/runtime/store/postgres/migrate.ts';
import type { Database } from '../../lambdas/runtime/store/sql/database.ts';
import type { DatabaseOutbox } from '../../lambdas/runtime/store/sql/database-outbox.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { startMariadb } from '../mysql/server/mariadb-server.ts';
import { startPostgres } from '../postgres/server/postgres-server.ts';
import { SLOW_SERVER, slowCommits } from './slow-commits.ts';

const CONFIG = { service: 'orders', tableName: 'Mailroom', publishes: ['Placed'] };

/** The server of quiet producers, with a table `note` of their service. */
export interface QuietServer<Tx = unknown> {
  readonly database: Database<Tx>;
  readonly outbox: Pick<DatabaseOutbox<Tx>, 'commit' | 'write'>;
  /** Inserts a note. Parameter: its id. */
  readonly insertNote: string;
  /** Returns the ids of the notes. */
  readonly notes: string;
  /** Returns the ids of the aggregates of events. */
  readonly aggregates: string;
  readonly kill: () => Promise<void>;
  readonly recover: () => Promise<void>;
  /** The number of commits whose answer was lost. */
  readonly lostAnswers: () => number;
  /** The number of those whose transaction's id was committed without their row. */
  readonly reused: () => number;
  readonly close: () => Promise<void>;
}

/** Starts the server of quiet producers. */
export async function startQuietServer(engine: DatabaseEngine): Promise<QuietServer> {
  // What a transaction is, only its own server knows.
  return (engine === 'mysql' ? await startMysql() : await startPostgresql()) as QuietServer;
}

async function startPostgresql() {
  const server = await startPostgres('quiet-producers');
  const pool = new Pool({ connectionString: server.url, connectionTimeoutMillis: 10_000 });
  const database = nodePostgres(pool);
  await migratePostgres(database);
  await database.query('CREATE TABLE note (id uuid PRIMARY KEY)');
  await slowCommits(server.url, { note: 'INSERT' });
  const { watched, ...counts } = watching(
    database,
    (text) => text.includes('pg_xact_status'),
    ([, proof]) => proof,
  );
  return {
    ...server,
    ...counts,
    database,
    outbox: createPostgresOutbox({ config: CONFIG, database: watched, telemetry: memoryTelemetry() }),
    insertNote: 'INSERT INTO note VALUES ($1::uuid)',
    notes: 'SELECT id::text AS id FROM note',
    aggregates: 'SELECT aggregate_id AS id FROM mailroom.event',
    close: async () => {
      await pool.end();
      await server.close();
    },
  };
}

async function startMysql() {
  const server = await startMariadb('quiet-producers-mysql', SLOW_SERVER.mysql);
  const pool = createPool({ host: '127.0.0.1', port: server.port, user: 'root' });
  const database = mysql2(pool);
  await migrateMysql(database);
  await database.query('CREATE DATABASE shop');
  await database.query('CREATE TABLE shop.note (id CHAR(36) PRIMARY KEY) ENGINE=InnoDB');
  const { watched, ...counts } = watching(
    database,
    (text) => text.includes('is_replica'),
    ([proof]) => proof,
  );
  return {
    ...server,
    ...counts,
    database,
    outbox: createMysqlOutbox({ config: CONFIG, database: watched, telemetry: memoryTelemetry() }),
    insertNote: 'INSERT INTO shop.note VALUES (?)',
    notes: 'SELECT id FROM shop.note',
    aggregates: 'SELECT aggregate_id AS id FROM mailroom.event',
    close: async () => {
      await pool.end();
      await server.close();
    },
  };
}

/**
 * Watches the questions about commits whose answer was lost.
 *
 * @param isQuestion - recognizes such a statement
 * @param proofOf - the value by which it names its commit
 */
function watching<Tx>(
  database: Database<Tx>,
  isQuestion: (text: string) => boolean,
  proofOf: (values: readonly unknown[]) => unknown,
) {
  const asked = new Set<unknown>();
  const reused = new Set<unknown>();
  const watched: Database<Tx> = {
    ...database,
    query: async (text, values = []) => {
      if (!isQuestion(text)) return database.query(text, values);
      const proof = proofOf(values);
      asked.add(proof);
      const [row] = (await database.query(text, values)).rows;
      if (row?.status === 'committed' && row.done === 'false') reused.add(proof);
      return database.query(text, values);
    },
  };
  return { watched, lostAnswers: () => asked.size, reused: () => reused.size };
}
