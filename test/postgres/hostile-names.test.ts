import { readdirSync, readFileSync } from 'node:fs';
import { Pool } from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type OpenPostgres, openPostgres } from '../../cli/deployment/postgres-database.ts';
import { postgresRows } from '../../cli/deployment/postgres-rows.ts';
import { runMailroom } from '../../cli/program.ts';
import { runChecks } from '../../cli/reports/checks/check.ts';
import { postgresChecks } from '../../cli/reports/checks/postgres-checks.ts';
import { systemClock } from '../../lambdas/runtime/base/clock.ts';
import { nodePostgres, type PgClient } from '../../lambdas/runtime/postgres/databases.ts';
import { careForTables } from '../../lambdas/runtime/postgres/postgres-care.ts';
import { createPostgresOutbox } from '../../lambdas/runtime/postgres/postgres-outbox.ts';
import { createPostgresRelay } from '../../lambdas/runtime/postgres/postgres-relay.ts';
import { eventIdTime, minuteOf, systemRandomBytes } from '../../lambdas/runtime/store/event-id.ts';
import {
  grantPostgresRole,
  migratePostgres,
  migrationFile,
} from '../../lambdas/runtime/store/postgres/migrate.ts';
import { MIGRATIONS } from '../../lambdas/runtime/store/postgres/schema.ts';
import type { Database } from '../../lambdas/runtime/store/postgres/sql.ts';
import { memoryBus } from '../../testing/memory-bus.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { logOf } from '../brokers/servers/broker-files.ts';
import { capturedIo } from '../support/captured-io.ts';
import { inboxContract } from './inbox-contract.ts';
import { postgresTested } from './inbox-rig.ts';
import { type PostgresServer, startPostgres } from './server/postgres-server.ts';
import { createHostileOverloads } from './support/hostile-schema.ts';
import { relayConfig } from './support/relay-config.ts';
import { PRODUCER, placed } from './support/rig.ts';

const ROOT = new URL('../../', import.meta.url);

/** The names before a parenthesis in our files that have SQL, which are functions if PostgreSQL has them. */
const NAMES = [
  'lambdas/runtime/postgres/',
  'lambdas/runtime/store/postgres/',
  'cli/deployment/',
  'cli/commands/',
  'cli/reports/checks/',
].flatMap((folder) =>
  readdirSync(new URL(folder, ROOT))
    .filter((file) => file.includes('postgres') || folder.endsWith('postgres/'))
    .flatMap((file) => [
      ...readFileSync(new URL(folder + file, ROOT), 'utf8').matchAll(/\b([a-z_0-9]+)\s*\(/g),
    ])
    .map(([, name = '']) => name),
);

let server: PostgresServer;
let pool: Pool;
let open: OpenPostgres;
let database: Database<PgClient>;

/** The errors in the server's log: a hostile function was called, or a statement that resolved to one has the wrong type. */
function errors(): string[] {
  const lines = readFileSync(logOf('hostile-names'), 'utf8').split('\n');
  return lines.filter((line) => / ERROR: /.test(line)).slice(seen);
}
let seen = 0;

beforeAll(async () => {
  server = await startPostgres('hostile-names');
  pool = new Pool({ connectionString: server.url, max: 20 });
  const client = await pool.connect();
  await createHostileOverloads(client, [...new Set(NAMES)]);
  client.release();
  database = nodePostgres(pool);
  open = await openPostgres(server.url);
  seen = errors().length;
  await migratePostgres(database);
  await database.query('CREATE TABLE payment (id integer, event_id text NOT NULL, note text)');
});

afterEach(() => {
  const found = errors();
  seen += found.length;
  expect(found).toEqual([]);
});

afterAll(async () => {
  await open.end();
  await pool.end();
  await server.close();
});

test('the overloads would be called', async () => {
  for (const text of [
    'SELECT pg_advisory_xact_lock(1296124236)',
    "SELECT 3::int * interval '1 day'",
    "SELECT ARRAY['a']::text[] || 'b'::text",
    "SELECT json_build_object('a', 1)",
  ])
    await expect(pool.query(text)).rejects.toMatchObject({ message: expect.stringContaining('hostile') });
  seen += errors().length;
});

test('a migration by a file, again and from nothing, calls none of them', async () => {
  await pool.query('DROP SCHEMA mailroom CASCADE');
  for (const migration of MIGRATIONS) await pool.query(migrationFile(migration));
  await pool.query('DROP SCHEMA mailroom CASCADE');
  await migratePostgres(database);
  await migratePostgres(database);
  await pool.query('CREATE ROLE orders LOGIN');
  await grantPostgresRole(database, { login: 'orders', role: 'mailroom_producer', service: 'orders' });
  const { rows } = await pool.query('SHOW search_path');
  expect(rows).toEqual([{ search_path: '"$user", public' }]);
});

describe('every transition of the inbox calls none of them', () => {
  inboxContract('PostgreSQL', () => postgresTested(database));
});

test('the outbox, the relay, its care and the commands of an operator call none of them', async () => {
  await pool.query('TRUNCATE mailroom.event');
  const telemetry = memoryTelemetry();
  const outbox = createPostgresOutbox({ config: PRODUCER, database, telemetry });
  const made = await outbox.commit(async () => [1, 2, 3, 4, 5].map((n) => placed(n)));
  const later = await database.transaction(async (tx) => {
    const [scheduled] = await outbox.write(tx, [placed(6, { deliverAt: Date.now() + 60_000 })]);
    return String(scheduled?.eventId);
  });
  expect(await database.transaction((tx) => outbox.cancel(tx, later))).toBe('cancelled');
  expect(await database.transaction((tx) => outbox.cancel(tx, later))).toBe('cancelled');
  const failures = ['MalformedDetail', 'Unknown', 'ThrottlingException'];
  const bus = memoryBus({
    failEntry: ({ detail }) => {
      const code = failures[JSON.parse(detail).data.n - 1];
      return code === undefined ? undefined : { code, message: 'no' };
    },
  });
  const config = relayConfig({ publishedRetentionDays: 0 });
  const relay = createPostgresRelay({ config, database, bus, telemetry });
  expect(await relay.pass()).toMatchObject({ claimed: 5, published: 2 });
  await careForTables({ config, database, telemetry, clock: systemClock, random: systemRandomBytes });
  expect(telemetry.counted('SweepFailures')).toBe(0);
  const { rows } = await pool.query('SELECT event_id FROM mailroom.event');
  expect(rows).toHaveLength(3);

  const { outbox: events, inbox, deadLetters, operations, createdAt } = postgresRows(open.database);
  const [id = ''] = made.map(({ eventId }) => eventId);
  const now = Date.now();
  expect(await events.byId(id)).toMatchObject({ status: 'DEAD' });
  const statuses = await events.byIds([id], (_id, event) => event && 'status' in event && event.status);
  expect(statuses).toEqual(['DEAD']);
  const pages = events.inMinute(
    minuteOf(eventIdTime(id)),
    0,
    { type: 'Placed', containing: id },
    ({ SK }) => SK,
  );
  for await (const { items } of pages) expect(items).toEqual([`EVENT#${id}`]);
  expect(await events.pending({ shards: [0], sweptAt: now }, now)).toMatchObject({ more: false });
  expect(await inbox.byEvent('worker', id)).toBeUndefined();
  expect(await inbox.byEvents([{ consumer: 'worker', eventId: id }], (_key, row) => row)).toEqual([
    undefined,
  ]);
  expect(await inbox.hinted('idle', 5)).toEqual({ items: [], more: false });
  expect(await inbox.idsFrom('idle', id.slice(0, 8), 5)).toEqual([]);
  expect(await inbox.history('idle')).toBeUndefined();
  expect((await deadLetters.dead([0], 5)).items).toMatchObject([{ SK: id }]);
  expect(await deadLetters.rejected('idle', 5)).toEqual({ items: [], more: false });
  expect(await operations.between({ since: 0, until: now })).toEqual({ items: [], more: false });
  expect(await createdAt()).toBeLessThanOrEqual(now);
  const { io, written } = capturedIo();
  await runMailroom(
    ['postgres', 'requeue', '--reason', 'the bus is back', '--database', server.url, '--json'],
    io,
  );
  expect(JSON.parse(written.out)).toMatchObject({ requeued: [id] });
  const { problems } = await runChecks(postgresChecks(open, () => Date.now()));
  expect(problems).toEqual([]);
});
