import type { Pool, PoolConnection } from 'mysql2/promise';
import { type Mysql2Pool, type Mysql2Query, mysql2 } from '../../../lambdas/runtime/mysql/databases.ts';
import type { Database } from '../../../lambdas/runtime/store/sql/database.ts';
import { type SteppedWorker, stepping } from '../../postgres/explorer/stepped-worker.ts';

/** Statements that begin or undo a transaction, set a savepoint, or write what only its owner reads: no other worker can see that they ran. */
const UNSTEPPED =
  /^(SET TRANSACTION|START TRANSACTION|ROLLBACK|SAVEPOINT|RELEASE|SELECT @@|SELECT .* AS account|INSERT INTO mailroom\.(operation|commit) )/;

/** @param changed - called after each change of its state @param rewrite - changes a statement, for a hole */
export function steppedWorker(
  pool: Pool,
  changed: () => void,
  rewrite: (text: string) => string = (text) => text,
): SteppedWorker & { readonly database: Database<PoolConnection> } {
  const { send, end, ...worker } = stepping(changed);
  const connections = new Set<PoolConnection>();
  /** A handler sends text, and Mailroom sends options. */
  const queryOf =
    (of: Pool | PoolConnection) =>
    (query: Mysql2Query | string, values?: unknown): Promise<readonly [unknown, ...unknown[]]> => {
      const sql = typeof query === 'string' ? query : query.sql;
      const sent = typeof query === 'string' ? rewrite(sql) : { ...query, sql: rewrite(sql) };
      return send(!UNSTEPPED.test(sql), () =>
        values === undefined ? of.query(sent as string) : of.query(sent as string, values as unknown[]),
      );
    };
  const stepped: Mysql2Pool<PoolConnection> = {
    query: queryOf(pool),
    getConnection: async () => {
      const connection = await pool.getConnection();
      connections.add(connection);
      const given = (back: () => void) => () => {
        if (connections.delete(connection)) back();
      };
      return {
        query: queryOf(connection),
        release: given(() => connection.release()),
        destroy: given(() => connection.destroy()),
      } as unknown as PoolConnection;
    },
  };
  return {
    ...worker,
    database: mysql2(stepped),
    crash: async () => {
      end();
      for (const connection of connections) {
        connection.destroy();
        await ended(pool, connection.threadId);
      }
      connections.clear();
    },
  };
}

/**
 * Returns the number of transactions that wait for the lock of another one, as the lock table says at this moment. The counters of the server still count
 * a transaction whose lock was granted, until its thread runs, and INNODB_TRX is a cache.
 */
export async function waitingIn(pool: Pool): Promise<number> {
  const [rows] = await pool.query('SHOW ENGINE INNODB STATUS');
  const [status] = rows as { Status: string }[];
  return status?.Status.match(/TRX HAS BEEN WAITING/g)?.length ?? 0;
}

/** Ends a session, and waits until its transaction has ended. */
async function ended(pool: Pool, id: number): Promise<void> {
  await pool.query(`KILL ${id}`).catch(() => {}); // it may have noticed that its connection is closed
  for (;;) {
    const [rows] = await pool.query('SELECT 1 FROM information_schema.PROCESSLIST WHERE ID = ?', [id]);
    if ((rows as unknown[]).length === 0) return;
  }
}
