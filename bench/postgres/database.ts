import { Client, Pool } from 'pg';
import { nodePostgres } from '../../lambdas/runtime/postgres/databases.ts';
import { migratePostgres } from '../../lambdas/runtime/store/postgres/migrate.ts';
import { startPostgres } from '../../test/postgres/server/postgres-server.ts';

/** A database of its own for one measurement. */
export interface BenchDatabase {
  readonly url: string;
  readonly pool: Pool;
  /** The position of the write-ahead log, bytes. */
  readonly walBytes: () => Promise<number>;
  readonly close: () => Promise<void>;
}

/** A real server with durable commits. `wal_level` is logical in every measurement, so that they can be compared. */
export async function withServer<T>(
  use: (create: (name: string) => Promise<BenchDatabase>) => Promise<T>,
): Promise<T> {
  const server = await startPostgres('bench', {
    wal_level: 'logical',
    shared_buffers: '512MB',
    max_wal_size: '8GB',
    max_connections: '200',
  });
  const create = async (name: string): Promise<BenchDatabase> => {
    const admin = new Client(server.url);
    await admin.connect();
    await admin.query(`CREATE DATABASE ${name}`);
    await admin.end();
    const url = server.url.replace(/\/postgres$/, `/${name}`);
    const pool = new Pool({ connectionString: url, max: 40 });
    await migratePostgres(nodePostgres(pool));
    const walBytes = async () => {
      const { rows } = await pool.query("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn AS bytes");
      return Number(rows[0]?.bytes);
    };
    return { url, pool, walBytes, close: () => pool.end() };
  };
  try {
    return await use(create);
  } finally {
    await server.close();
  }
}

/** The payload of an event, about 1 KB as an envelope. */
export const PAYLOAD = { note: 'x'.repeat(700) };

/** The time that a call to the bus takes, milliseconds: as long as one of EventBridge. */
export const BUS_MS = 30;

/** A percentile of some times, milliseconds. */
export function percentile(times: readonly number[], share: number): number {
  const sorted = times.toSorted((a, b) => a - b);
  return Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN);
}

/** Calls a function at a steady rate until a time, and waits for its calls. @param perSecond - at most 1,000 */
export async function steadily(
  perSecond: number,
  forMs: number,
  call: (n: number) => Promise<unknown>,
): Promise<number> {
  const beganAt = performance.now();
  const calls: Promise<unknown>[] = [];
  for (let elapsed = 0; elapsed < forMs; elapsed = performance.now() - beganAt) {
    const due = Math.floor((elapsed / 1_000) * perSecond);
    while (calls.length < due) calls.push(call(calls.length));
    await new Promise((resolve) => setTimeout(resolve, 1_000 / perSecond));
  }
  await Promise.all(calls);
  return calls.length;
}

/** Bytes as MB, with one decimal. */
export function megabytes(bytes: unknown): number {
  return Math.round(Number(bytes) / 100_000) / 10;
}
