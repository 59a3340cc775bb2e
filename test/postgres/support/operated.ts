import { Pool } from 'pg';
import { type OpenPostgres, openPostgres } from '../../../cli/deployment/postgres-database.ts';
import { systemClock } from '../../../lambdas/runtime/base/clock.ts';
import { nodePostgres } from '../../../lambdas/runtime/postgres/databases.ts';
import { mintEventId, systemRandomBytes } from '../../../lambdas/runtime/store/event-id.ts';
import { grantPostgresRole, migratePostgres } from '../../../lambdas/runtime/store/postgres/migrate.ts';
import type { Sql } from '../../../lambdas/runtime/store/postgres/sql.ts';
import type { Item } from '../../../lambdas/runtime/store/table.ts';
import { memoryTelemetry } from '../../../testing/memory-telemetry.ts';
import { operatedMailroom } from '../../support/operated-mailroom.ts';
import { type PostgresServer, startPostgres } from '../server/postgres-server.ts';
import { relayConfig } from './relay-config.ts';

/** A migrated database, and the rows of a Mailroom that also has a table in memory. */
export interface Operated {
  readonly server: PostgresServer;
  /** The owner's connections. */
  readonly pool: Pool;
  /** The database as the command reaches it, by the login of an operator. */
  readonly postgres: OpenPostgres;
  /** Removes every row. */
  clear(): Promise<void>;
  close(): Promise<void>;
}

/** Starts a server with an operator, whose login is `ada`. */
export async function startOperated(name: string): Promise<Operated> {
  const server = await startPostgres(name);
  const pool = new Pool({ connectionString: server.url });
  const owner = await openPostgres(server.url);
  await migratePostgres(owner.database);
  await pool.query('CREATE ROLE ada LOGIN');
  await grantPostgresRole(owner.database, { login: 'ada', role: 'mailroom_operator' });
  await owner.end();
  const postgres = await openPostgres(`postgresql://ada@127.0.0.1:${server.port}/postgres`);
  const tables = ['event', 'pending', 'published', 'dead', 'discarded', 'cancelled', 'inbox', 'effect'];
  return {
    server,
    pool,
    postgres,
    clear: async () => {
      const all = [...tables, 'operation', 'inbox_retention'].map((table) => `mailroom.${table}`);
      await pool.query(`TRUNCATE ${all.join(', ')}`);
    },
    close: async () => {
      await postgres.end();
      await pool.end();
      await server.close();
    },
  };
}

/**
 * The rig's Mailroom with rows in PostgreSQL, too. Its clock agrees with the database's, and its sweep has just run.
 *
 * @param sleep - what happens while the command waits
 * @param sql - where it changes events @default the database
 */
export async function mailroomWith(
  { postgres }: Operated,
  items: readonly Item[] = [],
  sleep: () => Promise<void> = async () => {},
  sql: Sql = postgres.database,
) {
  const opened = { ...postgres, database: { ...postgres.database, query: sql.query } };
  return operatedMailroom(opened, items, sleep);
}

/** An event in PostgreSQL, in no state yet. */
export async function storedEvent({ pool }: Operated, at: number, aggregateId = '42'): Promise<string> {
  const eventId = mintEventId(at, 256);
  const envelope = {
    eventId,
    type: 'ThingHappened',
    version: 1,
    aggregateType: 'Thing',
    aggregateId,
    occurredAt: at,
    correlationId: eventId,
    data: { n: 1 },
  };
  await pool.query('INSERT INTO mailroom.event (event_id, source, type, envelope) VALUES ($1, $2, $3, $4)', [
    eventId,
    'things',
    'ThingHappened',
    JSON.stringify(envelope),
  ]);
  return eventId;
}

/** A DEAD event in PostgreSQL. */
export async function deadEvent(operated: Operated): Promise<string> {
  const eventId = await storedEvent(operated, Date.now() - 60_000);
  await operated.pool.query(
    `INSERT INTO mailroom.dead VALUES ($1, clock_timestamp(), 5, 'Detail is not valid', 'relay InvalidArgument')`,
    [eventId],
  );
  return eventId;
}

/** A PUBLISHED event in PostgreSQL. */
export async function publishedEvent(operated: Operated, at = Date.now() - 60_000): Promise<string> {
  const eventId = await storedEvent(operated, at);
  await operated.pool.query('INSERT INTO mailroom.published VALUES ($1, $2)', [eventId, new Date(at)]);
  return eventId;
}

/** Dependencies of a relay of the database. */
export function relayPartsOf({ pool }: Operated) {
  return {
    config: relayConfig({ sources: ['things'] }),
    database: nodePostgres(pool),
    clock: systemClock,
    random: systemRandomBytes,
    telemetry: memoryTelemetry(),
  };
}

/** The tables in which an event is, once for each of its rows. */
export async function statesOf({ pool }: Operated, eventId: string): Promise<string[]> {
  const { rows } = await pool.query(
    ['pending', 'dead', 'published', 'discarded']
      .map((table) => `SELECT '${table}' AS name FROM mailroom.${table} WHERE event_id = $1`)
      .join(' UNION ALL '),
    [eventId],
  );
  return rows.map(({ name }) => name).toSorted();
}

/** The entries of the operations log. */
export async function logOf({ pool }: Operated) {
  const text = 'SELECT operator, command, subject, reason FROM mailroom.operation ORDER BY at, token';
  return (await pool.query(text)).rows;
}
