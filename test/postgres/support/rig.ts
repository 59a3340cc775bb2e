import { Pool } from 'pg';
import { z } from 'zod';
import { defineEvent } from '../../../lambdas/runtime/events/event.ts';
import { nodePostgres, type PgClient } from '../../../lambdas/runtime/postgres/databases.ts';
import {
  createPostgresOutbox,
  type PostgresOutbox,
} from '../../../lambdas/runtime/postgres/postgres-outbox.ts';
import { migratePostgres } from '../../../lambdas/runtime/store/postgres/migrate.ts';
import type { Database } from '../../../lambdas/runtime/store/postgres/sql.ts';
import { poll } from '../../../localstack/health.ts';
import { memoryTelemetry } from '../../../testing/memory-telemetry.ts';
import { type PostgresServer, startPostgres } from '../server/postgres-server.ts';

export const Placed = defineEvent({
  source: 'orders',
  type: 'Placed',
  version: 1,
  aggregateType: 'order',
  schema: z.object({ n: z.number() }),
});

/** An event of its own aggregate. */
export function placed(n: number, more: { readonly deliverAt?: number } = {}) {
  return Placed.create({ aggregateId: String(n), data: { n }, ...more });
}

export const PRODUCER = { service: 'orders', tableName: 'Mailroom', publishes: ['Placed'] };

/** A migrated database on its own server. */
export interface Rig {
  readonly server: PostgresServer;
  readonly pool: Pool;
  readonly database: Database<PgClient>;
  readonly outbox: PostgresOutbox<PgClient>;
  /** Commits events, and returns their ids. */
  readonly commit: (...ns: number[]) => Promise<string[]>;
  /** The rows of a query. */
  readonly rows: (text: string, ...values: unknown[]) => Promise<Record<string, unknown>[]>;
  /** Removes every event. */
  readonly clear: () => Promise<void>;
  readonly close: () => Promise<void>;
}

export async function startRig(name: string, settings: Readonly<Record<string, string>> = {}): Promise<Rig> {
  const server = await startPostgres(name, settings);
  const pool = new Pool({ connectionString: server.url, max: 30 });
  pool.on('error', () => {});
  const database = nodePostgres(pool);
  await migratePostgres(database);
  const outbox = createPostgresOutbox({ config: PRODUCER, database, telemetry: memoryTelemetry() });
  const rows: Rig['rows'] = async (text, ...values) => (await pool.query(text, values)).rows;
  return {
    server,
    pool,
    database,
    outbox,
    commit: async (...ns) =>
      (await outbox.commit(async () => ns.map((n) => placed(n)))).map(({ eventId }) => eventId),
    rows,
    clear: async () => {
      await pool.query(
        'TRUNCATE mailroom.event, mailroom.pending, mailroom.published, mailroom.dead, mailroom.discarded, mailroom.cancelled',
      );
    },
    close: async () => {
      await pool.end();
      await server.close();
    },
  };
}

/** A condition that does not hold by then never will, on a busy machine, too. */
const DEADLINE_MS = 120_000;

/** Waits until a look returns something else than `undefined`. */
export async function eventually<T>(look: () => Promise<T | undefined>): Promise<T> {
  const seen = await poll(DEADLINE_MS, look);
  if (seen === undefined) throw new Error(`The condition did not hold within ${DEADLINE_MS / 1_000} s.`);
  return seen;
}
