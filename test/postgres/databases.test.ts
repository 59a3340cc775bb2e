import { sql } from 'drizzle-orm';
import { drizzle as drizzleOf } from 'drizzle-orm/node-postgres';
import knexOf from 'knex';
import { CompiledQuery, Kysely, PostgresDialect } from 'kysely';
import { Pool, type PoolClient } from 'pg';
import postgres from 'postgres';
import { DataSource } from 'typeorm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { RetryLater } from '../../lambdas/runtime/base/errors.ts';
import { kysely, typeOrm } from '../../lambdas/runtime/database/orm-databases.ts';
import { nodePostgres, type PgClient, postgresJs } from '../../lambdas/runtime/postgres/databases.ts';
import { drizzle, knex } from '../../lambdas/runtime/postgres/orm-databases.ts';
import { createPostgresInboxProcessor } from '../../lambdas/runtime/postgres/postgres-consumer.ts';
import { postgresHandlers } from '../../lambdas/runtime/postgres/postgres-handlers.ts';
import { createPostgresOutbox } from '../../lambdas/runtime/postgres/postgres-outbox.ts';
import { createPostgresRelay } from '../../lambdas/runtime/postgres/postgres-relay.ts';
import {
  migratePostgres,
  migrationFile,
  SCHEMA_VERSION,
} from '../../lambdas/runtime/store/postgres/migrate.ts';
import { MIGRATIONS } from '../../lambdas/runtime/store/postgres/schema.ts';
import { type Database, sqlState } from '../../lambdas/runtime/store/postgres/sql.ts';
import { consumerConfig } from '../../testing/default-config.ts';
import { memoryBus } from '../../testing/memory-bus.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { type PostgresServer, startPostgres } from './server/postgres-server.ts';
import { relayConfig } from './support/relay-config.ts';
import { eventually, Placed, PRODUCER, placed } from './support/rig.ts';

let server: PostgresServer;
let pool: Pool;

beforeAll(async () => {
  server = await startPostgres('databases');
  pool = new Pool({ connectionString: server.url });
});

afterAll(async () => {
  await pool.end();
  await server.close();
});

test('a migration creates the schema once, also if several run at a time', async () => {
  const database = nodePostgres(pool);
  const runs = await Promise.all([1, 2, 3].map(() => migratePostgres(database)));
  expect(runs.map(({ from }) => from).toSorted()).toEqual([0, SCHEMA_VERSION, SCHEMA_VERSION]);
  await database.query('INSERT INTO mailroom.migration (version) VALUES ($1)', [SCHEMA_VERSION + 1]);
  await expect(migratePostgres(database)).rejects.toMatchObject({ code: 'NEWER_SCHEMA' });
  await database.query('DELETE FROM mailroom.migration WHERE version > $1', [SCHEMA_VERSION]);
});

test('a schema of version 1 keeps its events, and accepts those of a producer that was not updated', async () => {
  await pool.query('CREATE DATABASE earlier');
  const own = new Pool({ connectionString: server.url.replace(/postgres$/, 'earlier') });
  const write = (id: string) =>
    own.query('INSERT INTO mailroom.event (event_id, source, type, envelope) VALUES ($1, $2, $3, $4)', [
      id,
      'orders',
      'Placed',
      '{}',
    ]);
  const [first] = MIGRATIONS;
  await own.query(first === undefined ? '' : migrationFile(first));
  await write('019b76da-a800-7000-8000-000000000001');
  expect(await migratePostgres(nodePostgres(own))).toEqual({ from: 1, to: SCHEMA_VERSION });
  await write('019b76da-a800-7000-8000-000000000002');
  const { rows } = await own.query('SELECT aggregate_type, aggregate_id FROM mailroom.event');
  await own.end();
  expect(rows).toEqual([1, 2].map(() => ({ aggregate_type: null, aggregate_id: null })));
});

const DATABASES: Readonly<
  Record<string, () => Promise<{ database: Database<unknown>; end: () => Promise<unknown> }>>
> = {
  'node-postgres': async () => ({ database: anyTx(nodePostgres(pool)), end: async () => {} }),
  Drizzle: async () => ({ database: anyTx(drizzle(drizzleOf(pool), sql)), end: async () => {} }),
  Kysely: async () => {
    const own = new Pool({ connectionString: server.url });
    const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool: own }) });
    return { database: anyTx(kysely(db, CompiledQuery.raw)), end: () => db.destroy() };
  },
  Knex: async () => {
    const db = knexOf({ client: 'pg', connection: server.url });
    return { database: anyTx(knex(db)), end: () => db.destroy() };
  },
  'postgres.js': async () => {
    const db = postgres(server.url, { onnotice: () => {} });
    return { database: anyTx(postgresJs(db)), end: () => db.end() };
  },
  TypeORM: async () => {
    const source = await new DataSource({ type: 'postgres', url: server.url }).initialize();
    return { database: anyTx(typeOrm(source)), end: () => source.destroy() };
  },
};

function anyTx<Tx>(database: Database<Tx>): Database<unknown> {
  return database as Database<unknown>;
}

describe.each(Object.entries(DATABASES))('%s', (name, open) => {
  let opened: Awaited<ReturnType<typeof open>>;

  beforeAll(async () => {
    opened = await open();
    await opened.database.query('CREATE TABLE IF NOT EXISTS place (id int PRIMARY KEY, tags text[])');
    await opened.database.query('DELETE FROM place');
  });
  afterAll(() => opened.end());

  test('passes parameters, also arrays and repeated ones, and returns changed rows', async () => {
    const { database } = opened;
    await database.transaction(async (tx) => {
      const { query } = database.in(tx);
      const inserted = await query(
        'INSERT INTO place (id, tags) VALUES ($1::int, $2::text[]) RETURNING id, $1::int + 1 AS next',
        [1, ['a', "b'"]],
      );
      expect(inserted).toEqual({ rows: [{ id: 1, next: 2 }] });
      const updated = await query(
        "UPDATE place SET tags = tags || $1::text WHERE 'a' = ANY(tags) RETURNING tags",
        ['c'],
      );
      expect(updated).toEqual({ rows: [{ tags: ['a', "b'", 'c'] }] });
      expect((await query('DELETE FROM place WHERE id = $1::int RETURNING id', [9])).rows).toEqual([]);
      expect((await query('SELECT id FROM place')).rows).toHaveLength(1);
      expect(await query("SELECT current_setting('transaction_isolation') AS is")).toMatchObject({
        rows: [{ is: 'read committed' }],
      });
    });
    expect((await database.query('SELECT id FROM place')).rows).toEqual([{ id: 1 }]);
  });

  test('rolls a transaction back, and tells the SQLSTATE of what failed', async () => {
    const { database } = opened;
    const failed = database.transaction(async (tx) => {
      await database.in(tx).query('INSERT INTO place (id) VALUES (2)');
      await database.in(tx).query('INSERT INTO place (id) VALUES (2)');
    });
    expect(sqlState(await failed.catch((error: unknown) => error))).toBe('23505');
    expect((await database.query('SELECT id FROM place WHERE id = 2')).rows).toEqual([]);
  });

  test('publishes what an outbox commits', async () => {
    const { database } = opened;
    await migratePostgres(database);
    await pool.query('DELETE FROM mailroom.pending');
    const telemetry = memoryTelemetry();
    const bus = memoryBus();
    const outbox = createPostgresOutbox({ config: PRODUCER, database, telemetry });
    const [event] = await outbox.commit(async () => [placed(1)]);
    const relay = createPostgresRelay({ config: relayConfig(), database, bus, telemetry });
    const pass = await relay.pass();
    expect(telemetry.lines()).toEqual([]);
    expect(pass).toEqual({ claimed: 1, published: 1, failed: false });
    expect(JSON.parse(bus.published()[0]?.detail ?? '')).toEqual(event);
    expect((await database.query('SELECT 1 FROM mailroom.pending')).rows).toEqual([]);
  });

  test.each(['transactional', 'leased'] as const)('runs a %s handler once', async (kind) => {
    const { database } = opened;
    await migratePostgres(database);
    const telemetry = memoryTelemetry();
    const outbox = createPostgresOutbox({ config: PRODUCER, database, telemetry });
    const config = consumerConfig({ service: 'orders', consumer: `${name}-${kind}`, publishes: ['Placed'] });
    const inbox = createPostgresInboxProcessor({ config, database, outbox, telemetry });
    const handlers = postgresHandlers(database);
    let charges = 0;
    const charge = async () => {
      charges += 1;
      return { charge: charges };
    };
    const handler = {
      transactional: () =>
        handlers.transactional(Placed, async () => {
          await charge();
          return { events: [placed(2)] };
        }),
      leased: () =>
        handlers.leased(Placed, async (_event, ctx) => {
          expect(await ctx.once('charge', charge)).toEqual({ charge: 1 });
          if (ctx.attempt === 1) throw new RetryLater(0);
          await ctx.commit(async () => ({ events: [placed(2)] }));
        }),
    }[kind]();
    const [event] = await outbox.commit(async () => [placed(1)]);
    const body = JSON.stringify({ source: 'orders', 'detail-type': 'Placed', detail: event });
    const answers = [];
    for (const receives of [1, 2, 3])
      answers.push(await inbox.process({ id: `${name}/${kind}`, body, receives }, handler));
    const expected = {
      transactional: ['done', 'duplicate', 'duplicate'],
      leased: ['retry', 'done', 'duplicate'],
    };
    expect(answers.map(({ kind: answer }) => answer)).toEqual(expected[kind]);
    expect(charges).toBe(1);
    const caused = await database.query('SELECT envelope FROM mailroom.event WHERE envelope LIKE $1::text', [
      `%"causationId":"${event?.eventId}"%`,
    ]);
    expect(caused.rows).toHaveLength(1);
  });
});

test('no statement returns a column of type void, which Prisma cannot read', async () => {
  const VOID = 2278; // its id in pg_type
  const types: number[] = [];
  const recorded = async (queryable: Pick<PoolClient, 'query'>, text: string, values?: unknown[]) => {
    const result = await queryable.query(text, values);
    types.push(...result.fields.map(({ dataTypeID }) => dataTypeID));
    return result;
  };
  const database = nodePostgres({
    query: (text, values) => recorded(pool, text, values),
    connect: async () => {
      const client = await pool.connect();
      const query: PgClient['query'] = (text, values) => recorded(client, text, values);
      return { query, release: (error) => client.release(error) };
    },
  });
  await migratePostgres(database);
  const outbox = createPostgresOutbox({ config: PRODUCER, database });
  await outbox.commit(async () => [placed(1)]);
  const telemetry = memoryTelemetry();
  const relay = createPostgresRelay({ config: relayConfig(), database, bus: memoryBus(), telemetry });
  const running = relay.run();
  const claimsAndMarks = await eventually(async () => types.length > 30 || undefined);
  relay.stop();
  await running;
  expect(claimsAndMarks).toBe(true);
  expect(types).not.toContain(VOID);
});
