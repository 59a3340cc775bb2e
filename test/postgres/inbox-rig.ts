import { Pool, type PoolConfig } from 'pg';
import { dynamoInbox } from '../../lambdas/runtime/consume/dynamo-inbox.ts';
import type { Inbox } from '../../lambdas/runtime/consume/inbox-port.ts';
import type { InboxChanges } from '../../lambdas/runtime/inbox/inbox-operator.ts';
import { nodePostgres, type PgClient } from '../../lambdas/runtime/postgres/databases.ts';
import { createInbox } from '../../lambdas/runtime/store/dynamo/inbox-context.ts';
import { dynamoInboxChanges } from '../../lambdas/runtime/store/dynamo/inbox-operator.ts';
import { mintEventId, systemRandomBytes } from '../../lambdas/runtime/store/event-id.ts';
import { postgresInbox } from '../../lambdas/runtime/store/postgres/inbox.ts';
import { postgresInboxChanges } from '../../lambdas/runtime/store/postgres/inbox-operator.ts';
import { migratePostgres } from '../../lambdas/runtime/store/postgres/migrate.ts';
import type { Database } from '../../lambdas/runtime/store/postgres/sql.ts';
import type { DatabaseEvents } from '../../lambdas/runtime/store/sql/database-outbox.ts';
import { type ManualClock, manualClock } from '../../testing/index.ts';
import { rig } from '../support/runtime-rig.ts';
import { startPostgres } from './server/postgres-server.ts';

/** Long enough that none passes while a slow machine runs a test. */
export const LEASE_MS = 3_600_000;
export const FUNCTION_MS = 3 * LEASE_MS;

const SETTINGS = { consumer: 'worker', leaseMs: LEASE_MS, inboxRetentionDays: 35, random: systemRandomBytes };

/** The inbox of one consumer, in one of the storages, with a time that the test decides. */
export interface TestedInbox {
  readonly inbox: Inbox;
  readonly clock: ManualClock;
  /** Another worker with the same storage. @param retentionDays - @default 35 */
  worker(retentionDays?: number): Inbox;
  /** Lets time pass for the storage and for the clock. */
  pass(ms: number): Promise<void>;
  /** The number of events that were committed. */
  events(): Promise<number>;
}

/** An inbox, and the changes of an operator in its storage. */
export interface DecidedInbox extends TestedInbox {
  readonly changes: InboxChanges;
}

/** The inbox in a table in memory. */
export async function dynamoTested(): Promise<DecidedInbox> {
  const { clock, memory, outbox, rows } = rig();
  const worker = (inboxRetentionDays = SETTINGS.inboxRetentionDays) =>
    dynamoInbox(createInbox({ ...SETTINGS, inboxRetentionDays, clock, table: memory }), outbox);
  return {
    inbox: worker(),
    changes: dynamoInboxChanges({ table: memory, clock }),
    clock,
    worker,
    pass: (ms) => clock.advance(ms),
    events: async () => rows().length,
  };
}

/** A PostgreSQL with the schema, and a table of the service. */
export async function migratedPostgres(
  name: string,
  config: PoolConfig = {},
  settings: Readonly<Record<string, string>> = {},
) {
  const server = await startPostgres(name, settings);
  const pool = new Pool({ connectionString: server.url, max: 20, ...config });
  pool.on('error', () => {}); // a test ends connections
  const database = nodePostgres(pool);
  await migratePostgres(database);
  await database.query('CREATE TABLE payment (id serial PRIMARY KEY, event_id text NOT NULL, note text)');
  return {
    server,
    pool,
    database,
    close: async () => {
      await pool.end();
      await server.close();
    },
  };
}

/** Writes an event as an outbox does, as far as a test of the inbox needs it. */
export const testOutbox: DatabaseEvents<PgClient> = {
  write: async (tx, events) => {
    for (const { definition, data } of events)
      await tx.query(
        'INSERT INTO mailroom.event (event_id, source, type, envelope) VALUES ($1::uuid, $2::text, $3::text, $4::text)',
        [mintEventId(Date.now(), 1), definition.source, definition.type, JSON.stringify(data)],
      );
  },
};

/** The inbox in PostgreSQL, empty. */
export async function postgresTested(database: Database<PgClient>): Promise<DecidedInbox> {
  const clock = manualClock(Date.now()); // about that of the server, which dates the first start of the inbox
  await database.query(
    'TRUNCATE mailroom.inbox, mailroom.effect, mailroom.inbox_retention, mailroom.last_sequence, mailroom.event, payment',
  );
  const worker = (inboxRetentionDays = SETTINGS.inboxRetentionDays) =>
    postgresInbox({ settings: { ...SETTINGS, inboxRetentionDays, clock }, database, outbox: testOutbox });
  return {
    inbox: worker(),
    changes: postgresInboxChanges({ database, whole: database, clock }),
    clock,
    worker,
    pass: async (ms) => {
      await shift(database, ms);
      await clock.advance(ms);
    },
    events: async () => (await database.query('SELECT 1 FROM mailroom.event')).rows.length,
  };
}

/** Moves every stored time back: the same as a wait. */
export async function shift(database: Database<PgClient>, ms: number): Promise<void> {
  const back = (...columns: string[]) =>
    columns.map((column) => `${column} = ${column} - $1::float8 * interval '1 ms'`).join(', ');
  // A row that a transaction has changed has no lease to pass.
  await database.query(
    `WITH shifted_inbox AS (
      UPDATE mailroom.inbox SET ${back('claimed_at', 'lease_until', 'ends_by', 'retry_at', 'processed_at', 'expires_at')}
        WHERE (consumer, event_id) IN (SELECT consumer, event_id FROM mailroom.inbox FOR UPDATE SKIP LOCKED)),
    shifted_effects AS (
      UPDATE mailroom.effect SET ${back('started_at', 'ends_by', 'ended_at')}
        WHERE (consumer, event_id, name) IN (SELECT consumer, event_id, name FROM mailroom.effect FOR UPDATE SKIP LOCKED))
    UPDATE mailroom.inbox_retention SET ${back('since')}`,
    [ms],
  );
}

/** Lets a commit be sent. */
export function sent(): void {}

/** Waits for a handler without a deadline. */
export function inTime<T>(handler: Promise<T>): Promise<T> {
  return handler;
}
