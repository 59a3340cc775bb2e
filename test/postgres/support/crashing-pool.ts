import type { Pool } from 'pg';
import type { PgPool } from '../../../lambdas/runtime/postgres/databases.ts';

/** A pool whose next COMMIT waits for a function, for example one that kills the server. */
export interface CrashingPool extends PgPool {
  /** @param act - called with the id of the transaction, before its COMMIT is sent */
  beforeNextCommit(act: (xid: string) => Promise<void>): void;
}

export function crashingPool(pool: Pool): CrashingPool {
  let next: ((xid: string) => Promise<void>) | undefined;
  return {
    query: (text, values) => pool.query(text, values),
    beforeNextCommit: (act) => {
      next = act;
    },
    connect: async () => {
      const client = await pool.connect();
      return {
        query: async (text, values) => {
          const act = text === 'COMMIT' ? next : undefined;
          if (act !== undefined) {
            next = undefined;
            const { rows } = await client.query('SELECT pg_current_xact_id()::text AS xid');
            await act(String(rows[0].xid));
          }
          return client.query(text, values);
        },
        release: (error) => client.release(error),
        on: (event, listener) => client.on(event, listener),
        off: (event, listener) => client.off(event, listener),
      };
    },
  };
}
