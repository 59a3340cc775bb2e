import { once } from 'node:events';
import { type ClientBase, Pool } from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { nodePostgres, type PgClient } from '../../lambdas/runtime/postgres/databases.ts';
import { createPostgresOutbox } from '../../lambdas/runtime/postgres/postgres-outbox.ts';
import { postgresPool } from '../../lambdas/runtime/postgres/postgres-pool.ts';
import { readPostgresSettings } from '../../lambdas/runtime/postgres/postgres-settings.ts';
import { migratePostgres } from '../../lambdas/runtime/store/postgres/migrate.ts';
import { type Database, sqlState } from '../../lambdas/runtime/store/postgres/sql.ts';
import { poll } from '../../localstack/health.ts';
import { type PostgresServer, startPostgres } from './server/postgres-server.ts';

let server: PostgresServer;
let admin: Pool;

beforeAll(async () => {
  server = await startPostgres('connections');
  admin = new Pool({ connectionString: server.url });
  admin.on('error', () => {});
  await admin.query('CREATE TABLE place (id int)');
});

afterAll(async () => {
  await admin.end();
  await server.close();
});

/** A pool whose first connection is at the server that a failover made read-only. */
function poolAfterFailover() {
  const pool = new Pool({ connectionString: server.url, max: 1 });
  const opened: number[] = [];
  pool.on('connect', (client) => {
    opened.push(opened.length);
    if (opened.length === 1) void client.query('SET default_transaction_read_only = on');
  });
  return { pool, opened, database: nodePostgres(pool) };
}

const INSERT = 'INSERT INTO place VALUES (1)';

/** The SQLSTATE or the message of what a promise fails with. */
async function failureOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'none',
    (error: unknown) => sqlState(error) ?? String(error),
  );
}

type Attempt = (database: Database<PgClient>) => Promise<unknown>;

const ATTEMPTS: Readonly<Record<string, readonly [Attempt, string]>> = {
  'a transaction': [({ transaction }) => transaction((tx) => tx.query(INSERT)), '25006'],
  'a single statement': [({ query }) => query(INSERT), '25006'],
  'a transaction that replaces the error': [
    ({ transaction }) =>
      transaction(async (tx) => {
        await tx.query(INSERT).catch(() => {});
        throw new Error('Not placed');
      }),
    'Error: Not placed',
  ],
  'a transaction that hides the error': [
    ({ transaction }) => transaction((tx) => tx.query(INSERT).catch(() => {})),
    '25P02',
  ],
};

test.each(Object.entries(ATTEMPTS))(
  '%s that a read-only server refused closes its connection',
  async (_name, [attempt, expected]) => {
    const { pool, opened, database } = poolAfterFailover();
    expect(await failureOf(attempt(database))).toBe(expected);
    await database.query(INSERT);
    expect(opened).toHaveLength(2);
    await pool.end();
  },
);

test('a commit that a read-only server refused is repeated on another connection', async () => {
  await migratePostgres(nodePostgres(admin));
  const { pool, opened, database } = poolAfterFailover();
  const outbox = createPostgresOutbox({
    config: { service: 'orders', tableName: 'orders', publishes: ['*'] },
    database,
  });
  await outbox.commit(async (tx) => {
    await tx.query(INSERT);
    return [];
  });
  expect(opened).toHaveLength(2);
  await pool.end();
});

test('a statement that its timeout ended closes its connection', async () => {
  const pool = new Pool({ connectionString: server.url, max: 1, statement_timeout: 20 });
  const opened: unknown[] = [];
  pool.on('connect', (client) => opened.push(client));
  const { transaction } = nodePostgres(pool);
  expect(await failureOf(transaction((tx) => tx.query('SELECT pg_sleep(5)')))).toBe('57014');
  await transaction((tx) => tx.query('SELECT 1'));
  expect(opened).toHaveLength(2);
  await pool.end();
});

test('an error of the function itself keeps its connection', async () => {
  const pool = new Pool({ connectionString: server.url, max: 1 });
  const opened: unknown[] = [];
  pool.on('connect', (client) => opened.push(client));
  const { query, transaction } = nodePostgres(pool);
  const failed = transaction(async () => {
    throw new Error('No stock');
  });
  expect(await failureOf(failed)).toBe('Error: No stock');
  await query('SELECT 1');
  expect(opened).toHaveLength(1);
  await pool.end();
});

test('a connection that ends between two statements of a transaction fails it with 08006', async () => {
  const pool = new Pool({ connectionString: server.url, max: 1 });
  const { query, transaction } = nodePostgres(pool);
  const failed = transaction(async (tx) => {
    const client = tx as unknown as ClientBase;
    const ended = once(client, 'end');
    Reflect.get(client, 'connection').stream.destroy();
    await ended;
    await tx.query('SELECT 1');
  });
  expect(await failureOf(failed)).toBe('08006');
  expect((await query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
  await pool.end();
});

test('a pool without a listener survives the end of its idle connection', async () => {
  const pool = new Pool({ connectionString: server.url, max: 1 });
  const database = nodePostgres(pool);
  nodePostgres(pool);
  expect(pool.listenerCount('error')).toBe(1);
  const heard: Error[] = [];
  pool.on('error', (error) => heard.push(error));
  const { rows } = await database.query('SELECT pg_backend_pid() AS pid');
  await admin.query('SELECT pg_terminate_backend($1::int)', [rows[0]?.pid]);
  await poll(5_000, () => heard[0]);
  expect(heard).toHaveLength(1);
  expect((await database.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
  await pool.end();
});

test('a connection that ends while the pool lends it does not end the process', async () => {
  const pool = new Pool({ connectionString: server.url, max: 1 });
  nodePostgres(pool);
  const client = await pool.connect();
  client.emit('error', new Error('terminating connection due to unexpected postmaster exit'));
  client.release(true);
  await pool.end();
});

test('connections of the pool of a function have a maximum lifetime', async () => {
  const pool = postgresPool(readPostgresSettings({ MAILROOM_POSTGRES: server.url })) as Pool;
  expect(pool.options.maxLifetimeSeconds).toBe(300);
  await pool.end();
});
