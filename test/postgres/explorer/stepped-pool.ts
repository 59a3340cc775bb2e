import type { Pool, PoolClient } from 'pg';
import type { PgClient, PgPool } from '../../../lambdas/runtime/postgres/databases.ts';

/** A worker whose statements wait for the explorer, each before it is sent. */
export interface SteppedWorker {
  readonly pool: PgPool;
  /** `ready`: it waits before a statement. `sent`: a statement is on its way, or waits for a lock. `done`: it has ended. */
  state(): 'ready' | 'sent' | 'done';
  /** Sends the statement before which it waits. */
  step(): void;
  /** Ends the worker and its connections. */
  crash(): Promise<void>;
  /** Runs the worker until it is done or has crashed. */
  run(work: () => Promise<void>): void;
  /** The error with which it ended, if it failed. */
  failure(): unknown;
}

/** Statements that begin or undo a transaction, or read a setting: no other worker can see that they ran. */
const UNSTEPPED = /^(BEGIN|ROLLBACK|SHOW)/;

/** @param changed - called after each change of its state @param rewrite - changes a statement, for a hole */
export function steppedWorker(
  pool: Pool,
  changed: () => void,
  rewrite: (text: string) => string = (text) => text,
): SteppedWorker {
  let state: 'ready' | 'sent' | 'done' = 'sent';
  let crashed = false;
  let go: () => void = () => {};
  let failure: unknown;
  const clients = new Set<PoolClient>();
  const become = (next: typeof state) => {
    if (crashed) return;
    state = next;
    changed();
  };

  const turn = async (text: string) => {
    if (crashed) await never();
    if (UNSTEPPED.test(text)) return;
    await new Promise<void>((resolve) => {
      go = resolve;
      become('ready');
    });
  };

  const queryOf = (client: Pool | PoolClient): PgClient['query'] => {
    return async (text, values) => {
      await turn(text);
      try {
        return await client.query(rewrite(text), values);
      } finally {
        if (crashed) await never();
      }
    };
  };

  return {
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
    state: () => state,
    step: () => {
      state = 'sent';
      go();
    },
    crash: async () => {
      become('done');
      crashed = true;
      for (const client of clients) {
        const { rows } = await pool.query('SELECT $1::int AS pid', [Reflect.get(client, 'processID')]);
        client.release(true);
        await gone(pool, Number(rows[0].pid));
      }
      clients.clear();
    },
    run: (work) => {
      void work().then(
        () => become('done'),
        (error: unknown) => {
          failure = error;
          become('done');
        },
      );
    },
    failure: () => failure,
  };
}

function never(): Promise<never> {
  return new Promise(() => {});
}

/** Waits until the server has ended a session, and with it its transaction. */
async function gone(pool: Pool, pid: number): Promise<void> {
  for (;;) {
    const { rowCount } = await pool.query('SELECT 1 FROM pg_stat_activity WHERE pid = $1', [pid]);
    if (rowCount === 0) return;
  }
}
