import type { Pool, PoolClient } from 'pg';
import type { PgClient, PgPool } from '../../../lambdas/runtime/postgres/databases.ts';
import { type SteppedWorker, stepping } from './stepped-worker.ts';

/** Statements that begin or undo a transaction, or read a setting: no other worker can see that they ran. */
const UNSTEPPED = /^(BEGIN|ROLLBACK|SHOW)/;

/** @param changed - called after each change of its state @param rewrite - changes a statement, for a hole */
export function steppedWorker(
  pool: Pool,
  changed: () => void,
  rewrite: (text: string) => string = (text) => text,
): SteppedWorker & { readonly pool: PgPool } {
  const { send, end, ...worker } = stepping(changed);
  const clients = new Set<PoolClient>();
  const queryOf = (client: Pool | PoolClient): PgClient['query'] => {
    return (text, values) => send(!UNSTEPPED.test(text), () => client.query(rewrite(text), values));
  };
  return {
    ...worker,
    pool: {
      query: queryOf(pool),
      connect: async () => {
        const client = await pool.connect();
        clients.add(client);
        return {
          query: queryOf(client),
          release: (error) => {
            if (clients.delete(client)) client.release(error);
          },
        };
      },
    },
    crash: async () => {
      end();
      for (const client of clients) {
        const { rows } = await pool.query('SELECT $1::int AS pid', [Reflect.get(client, 'processID')]);
        client.release(true);
        await gone(pool, Number(rows[0].pid));
      }
      clients.clear();
    },
  };
}

/** Returns the number of statements that wait for the lock of another transaction. */
export async function waitingIn(pool: Pool): Promise<number> {
  const { rows } = await pool.query('SELECT count(*)::int AS n FROM pg_locks WHERE NOT granted');
  return rows[0].n;
}

/** Waits until the server has ended a session, and with it its transaction. */
async function gone(pool: Pool, pid: number): Promise<void> {
  for (;;) {
    const { rowCount } = await pool.query('SELECT 1 FROM pg_stat_activity WHERE pid = $1', [pid]);
    if (rowCount === 0) return;
  }
}
