import { Pool } from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runMailroom } from '../../cli/program.ts';
import { migrationFile, SCHEMA_VERSION } from '../../lambdas/runtime/store/postgres/migrate.ts';
import { MIGRATIONS } from '../../lambdas/runtime/store/postgres/schema.ts';
import { capturedIo } from '../support/captured-io.ts';
import { type PostgresServer, startPostgres } from './server/postgres-server.ts';

let server: PostgresServer;
let pool: Pool;

beforeAll(async () => {
  server = await startPostgres('migrate-command');
  pool = new Pool({ connectionString: server.url });
});

afterAll(async () => {
  await pool.end();
  await server.close();
});

/** Creates an empty database. @returns its address */
async function emptyDatabase(name: string): Promise<string> {
  await pool.query(`CREATE DATABASE ${name}`);
  return server.url.replace(/postgres$/, name);
}

async function run(...argv: string[]) {
  const { io, written } = capturedIo();
  const code = await runMailroom(['postgres', ...argv], io);
  return { code, ...written };
}

test('migrates an empty database, and then changes nothing', async () => {
  const url = await emptyDatabase('shop');
  const first = await run('migrate', '--database', url, '--json');
  expect(first.err).toBe('');
  expect(JSON.parse(first.out)).toEqual({
    database: `127.0.0.1:${server.port}/shop`,
    from: 0,
    to: SCHEMA_VERSION,
  });
  const second = await run('migrate', '--database', url);
  expect(second).toMatchObject({ code: 0 });
  expect(second.out.replaceAll(/\s+/g, ' ')).toContain('Nothing was changed');
});

test('the printed statements make the same tables as the command', async () => {
  const [byFile, byCommand] = [await emptyDatabase('by_file'), await emptyDatabase('by_command')];
  const { out } = await run('migrate', '--sql');
  expect(out.trimEnd()).toBe(MIGRATIONS.map(migrationFile).join('\n').trimEnd());
  await run('migrate', '--database', byCommand);
  const columnsIn = async (url: string, script?: string) => {
    const own = new Pool({ connectionString: url });
    try {
      if (script !== undefined) await own.query(script);
      const { rows } = await own.query(
        `SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'mailroom' ORDER BY 1, 2`,
      );
      return rows;
    } finally {
      await own.end();
    }
  };
  const made = await columnsIn(byFile, out);
  expect(made).toEqual(await columnsIn(byCommand));
  expect(made).not.toEqual([]);
});

test('a newer schema is left alone', async () => {
  const url = await emptyDatabase('newer');
  await run('migrate', '--database', url);
  const own = new Pool({ connectionString: url });
  await own.query('INSERT INTO mailroom.migration (version) VALUES ($1)', [SCHEMA_VERSION + 1]);
  await own.end();
  const refused = await run('migrate', '--database', url);
  expect(refused.code).toBe(2);
  expect(refused.err).toContain('NEWER_SCHEMA');
});

test('a grant gives a login its role and its timeouts', async () => {
  const url = await emptyDatabase('granting');
  await run('migrate', '--database', url);
  const missing = await run(
    'grant',
    'orders',
    '--role',
    'producer',
    '--service',
    'orders',
    '--database',
    url,
  );
  expect(missing.code).toBe(2);
  expect(missing.err.replaceAll(/\s+/g, ' ')).toContain('CREATE ROLE "orders" LOGIN');
  await pool.query('CREATE ROLE orders LOGIN');
  const granted = await run(
    'grant',
    'orders',
    '--role',
    'producer',
    '--service',
    'orders',
    '--database',
    url,
    '--json',
  );
  expect(JSON.parse(granted.out)).toMatchObject({ login: 'orders', role: 'mailroom_producer' });
  const { rows } = await pool.query(
    `SELECT pg_has_role('orders', 'mailroom_producer', 'USAGE') AS has, rolconfig FROM pg_roles WHERE rolname = 'orders'`,
  );
  expect(rows[0]).toMatchObject({ has: true, rolconfig: expect.arrayContaining(['lock_timeout=2s']) });
});

test('a login without the right to create roles is told what it lacks', async () => {
  const url = await emptyDatabase('denied');
  await pool.query('CREATE ROLE stranger LOGIN');
  const denied = await run('migrate', '--database', url.replace('postgres@', 'stranger@'));
  expect(denied.code).toBe(4);
  expect(denied.err).toContain('ACCESS_DENIED');
  expect(denied.err.replaceAll(/\s+/g, ' ')).toContain('CREATEROLE');
});

test.each([
  ['an address that is not one', 'mysql://x', 2, 'BAD_POSTGRES'],
  ['a server that does not respond', 'postgresql://ada:secret@127.0.0.1:1/shop', 4, 'UNREACHABLE'],
])('reports %s, without the password', async (_name, url, code, error) => {
  const failed = await run('migrate', '--database', url);
  expect(failed.code).toBe(code);
  expect(failed.err).toContain(error);
  expect(failed.err).not.toContain('secret');
});

test('reports a database that does not exist', async () => {
  const failed = await run('migrate', '--database', server.url.replace(/postgres$/, 'absent'));
  expect(failed).toMatchObject({ code: 2 });
  expect(failed.err).toContain('database "absent" does not exist');
});
