import { Client, Pool } from 'pg';
import { systemClock } from '../../lambdas/runtime/base/clock.ts';
import type { Bus } from '../../lambdas/runtime/bus/event-bus.ts';
import { nodePostgres } from '../../lambdas/runtime/postgres/databases.ts';
import { createPostgresOutbox } from '../../lambdas/runtime/postgres/postgres-outbox.ts';
import { createPostgresRelay } from '../../lambdas/runtime/postgres/postgres-relay.ts';
import type { DatabaseRelay } from '../../lambdas/runtime/relay/database-relay.ts';
import { migratePostgres } from '../../lambdas/runtime/store/postgres/migrate.ts';
import { eventClaim } from '../../lambdas/runtime/store/postgres/outbox-claim.ts';
import { startPostgres } from '../../test/postgres/server/postgres-server.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import {
  type BenchDatabase,
  type BenchServer,
  PRODUCER,
  PRODUCER_CONNECTIONS,
  RELAY,
  RELAY_CONNECTIONS,
} from '../sql/database.ts';

/** A database of PostgreSQL. */
export interface PostgresBenchDatabase extends BenchDatabase {
  readonly url: string;
  readonly pool: Pool;
  /** @param options.listens - it sleeps until a commit wakes it, instead of polling */
  readonly relayOf: (
    bus: Bus,
    options?: Parameters<BenchDatabase['relayOf']>[1] & { readonly listens?: boolean },
  ) => DatabaseRelay;
}

/** PostgreSQL. `wal_level` is logical in every measurement, so that they can be compared. */
export const postgresServer: BenchServer<PostgresBenchDatabase> = {
  name: 'postgres',
  title: 'a PostgreSQL',
  run: async (use) => {
    const server = await startPostgres('bench', {
      wal_level: 'logical',
      shared_buffers: '512MB',
      max_wal_size: '8GB',
      max_connections: '200',
    });
    try {
      return await use(async (name) => {
        const admin = new Client(server.url);
        await admin.connect();
        await admin.query(`CREATE DATABASE ${name}`);
        await admin.end();
        return openDatabase(server.url.replace(/\/postgres$/, `/${name}`));
      });
    } finally {
      await server.close();
    }
  },
};

async function openDatabase(url: string): Promise<PostgresBenchDatabase> {
  const pools: Pool[] = [];
  let statements = 0;
  const poolOf = (max: number): Pool => {
    const created = new Pool({ connectionString: url, max });
    created.on('connect', (client) => {
      const query = client.query.bind(client) as (...args: unknown[]) => unknown;
      const counted = (...args: unknown[]) => {
        statements += 1;
        return query(...args);
      };
      Object.assign(client, { query: counted });
    });
    pools.push(created);
    return created;
  };
  const pool = poolOf(PRODUCER_CONNECTIONS);
  const database = nodePostgres(pool);
  await migratePostgres(database);
  const numberOf = async (text: string, ...values: unknown[]) => {
    const { rows } = await pool.query<{ n: unknown }>(text, values);
    return Number(rows[0]?.n);
  };
  return {
    url,
    pool,
    outbox: createPostgresOutbox({ config: PRODUCER, database }),
    relayOf: (bus, { listens = false, orderBy } = {}) =>
      createPostgresRelay({
        config: { ...RELAY, orderBy },
        database: nodePostgres(poolOf(RELAY_CONNECTIONS)),
        bus,
        telemetry: memoryTelemetry(),
        listen: listens ? () => new Client(url) : undefined,
      }),
    inOrder: () => ({
      claim: eventClaim({ config: { ...RELAY, orderBy: 'aggregate' }, database, clock: systemClock }),
      countPutOff: () => numberOf('SELECT count(*) AS n FROM mailroom.pending WHERE waits_for IS NOT NULL'),
      putOff: async () => {
        await pool.query("UPDATE mailroom.pending SET due_at = clock_timestamp() + interval '1 hour'");
        await pool.query('VACUUM ANALYZE mailroom.pending');
      },
      makeFirstDue: () =>
        pool.query(
          'UPDATE mailroom.pending SET due_at = clock_timestamp(), fence = NULL WHERE event_id = (SELECT event_id FROM mailroom.event ORDER BY ordinal LIMIT 1)',
        ),
    }),
    analyze: () => pool.query('VACUUM ANALYZE mailroom.pending'),
    holdSnapshot: async () => {
      const holder = new Client(url);
      await holder.connect();
      await holder.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
      await holder.query('SELECT count(*) FROM pg_class');
      return () => holder.end();
    },
    logBytes: () => numberOf("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn AS n"),
    bytesOf: (...tables) =>
      numberOf(
        "SELECT sum(pg_total_relation_size(('mailroom.' || name)::regclass)) AS n FROM unnest($1::text[]) AS name",
        tables,
      ),
    writePublished: async (events) => {
      await pool.query(
        `WITH ids AS MATERIALIZED (SELECT overlay(gen_random_uuid()::text placing '7' from 15 for 1)::uuid AS id FROM generate_series(1, $1::int)), events AS (
      INSERT INTO mailroom.event (event_id, source, type, envelope) SELECT id, 'orders', 'Placed', '{"x":"' || repeat('x', 992) || '"}' FROM ids)
    INSERT INTO mailroom.published (event_id, published_at) SELECT id, now() - interval '30 days' FROM ids`,
        [events],
      );
      await pool.query('ANALYZE');
    },
    countPublished: () => numberOf('SELECT count(*) AS n FROM mailroom.published'),
    statements: () => statements,
    close: async () => {
      await Promise.all(pools.map((each) => each.end()));
    },
  };
}
