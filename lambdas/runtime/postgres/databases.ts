import { type Database, type Sql, type SqlRow, sqlState } from '../store/postgres/sql.ts';

/** The members that Mailroom uses of a client of `pg`. */
export interface PgQueryable {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: SqlRow[] }>;
}

/** The members that Mailroom uses of a client that a pool of `pg` has lent. */
export interface PgClient extends PgQueryable {
  release(error?: Error | boolean): void;
  on?(event: 'error', listener: (error: Error) => void): unknown;
  off?(event: 'error', listener: (error: Error) => void): unknown;
}

/** The members that Mailroom uses of a `Pool` of `pg`. */
export interface PgPool extends PgQueryable {
  connect(): Promise<PgClient>;
  on?(event: 'error', listener: (error: Error) => void): unknown;
  on?(event: 'connect', listener: (client: PgClient) => void): unknown;
}

/**
 * The database of a pool of `pg` (node-postgres). A connection at a server that is read-only, stopping or gone never returns to the pool,
 * and a connection that ends while it is idle does not end the process.
 *
 * @example
 * ```ts
 * const outbox = createPostgresOutbox({ config, database: nodePostgres(new Pool()) });
 * ```
 */
export function nodePostgres<Client extends PgClient>(
  pool: Omit<PgPool, 'connect'> & { connect(): Promise<Client> },
): Database<Client> {
  listenForErrors(pool);
  return {
    ...pgSql(pool), // the pool itself closes a connection whose statement failed
    in: pgSql,
    transaction: async (run) => {
      const client = await pool.connect();
      let lost: Error | undefined;
      // The pool listens to idle clients only: if this connection ended between two statements, the process would end.
      const onError = (error: Error) => {
        lost ??= error;
      };
      client.on?.('error', onError);
      const release = (close?: boolean) => {
        if (close !== true) client.off?.('error', onError);
        client.release(close);
      };
      try {
        await client.query('BEGIN ISOLATION LEVEL READ COMMITTED');
        const result = await run(client);
        refuseRollback(await client.query('COMMIT'));
        release();
        return result;
      } catch (error) {
        release(lost !== undefined || STALE.test(sqlState(error) ?? '') || !(await canWriteAgain(client)));
        throw lost !== undefined && sqlState(error) === undefined ? connectionFailure(error) : error;
      }
    },
  };
}

/** A read-only server, and a server or a session that stops. The next connection of the pool may reach another server. */
const STALE = /^(25006|57...|08...)$/;

/** Pools to which {@link nodePostgres} listens. */
const HEARD = new WeakSet<object>();

/**
 * Without listeners, a connection that the server closes would end the process: while it is idle (the pool has removed it by then), and in
 * the moment in which the pool lends it, when neither the pool nor the borrower listens.
 */
function listenForErrors(pool: Pick<PgPool, 'on'>): void {
  if (HEARD.has(pool)) return;
  HEARD.add(pool);
  pool.on?.('error', () => {});
  pool.on?.('connect', (client) => client.on?.('error', () => {}));
}

/**
 * Rolls back. A connection that cannot roll back is closed: its transaction ends with it. A failover may have made its server read-only,
 * although the error of that statement was replaced by another one.
 */
async function canWriteAgain(client: PgQueryable): Promise<boolean> {
  try {
    await client.query('ROLLBACK');
    const { rows } = await client.query('SHOW transaction_read_only');
    return Object.values(rows[0] ?? {})[0] !== 'on';
  } catch {
    return false;
  }
}

/** `pg` reports a lost connection without a SQLSTATE, as if the function of the transaction had failed. */
function connectionFailure(cause: unknown): Error {
  return Object.assign(new Error('The connection to PostgreSQL was lost.', { cause }), { code: '08006' });
}

/** PostgreSQL answers the COMMIT of a transaction in which a statement has failed with a rollback, which `pg` does not report as an error. */
function refuseRollback(result: object): void {
  if (!('command' in result) || result.command !== 'ROLLBACK') return;
  const message =
    'The transaction was rolled back: one of its statements failed, and its error was not thrown.';
  throw Object.assign(new Error(message), { code: '25P02' });
}

function pgSql(queryable: PgQueryable): Sql {
  return {
    adapter: 'nodePostgres',
    query: async (text, values = []) => {
      const { rows } = await queryable.query(text, [...values]);
      return { rows };
    },
  };
}

/** The members that Mailroom uses of a connection or transaction of `postgres` (postgres.js). */
export interface PostgresJsQueryable {
  unsafe(text: string, values?: never[]): PromiseLike<unknown>;
}

/**
 * The database of `postgres` (postgres.js).
 *
 * @example
 * ```ts
 * const outbox = createPostgresOutbox({ config, database: postgresJs(postgres()) });
 * ```
 */
export function postgresJs<Tx extends PostgresJsQueryable>(
  sql: PostgresJsQueryable & {
    begin<T>(options: string, run: (tx: Tx) => Promise<T>): Promise<unknown>;
  },
): Database<Tx> {
  const of = (queryable: PostgresJsQueryable): Sql => ({
    adapter: 'postgresJs',
    query: async (text, values = []) => {
      // It would encode JSON and times itself: the server reads each string as text first.
      const asText = text.replaceAll(/\$(\d+)::/g, (cast, n) =>
        typeof values[Number(n) - 1] === 'string' ? `$${n}::text::` : cast,
      );
      const rows = (await queryable.unsafe(asText, [...values] as never[])) as SqlRow[];
      return { rows: [...rows] };
    },
  });
  return {
    ...of(sql),
    in: of,
    transaction: async <T>(run: (tx: Tx) => Promise<T>) =>
      (await sql.begin('ISOLATION LEVEL READ COMMITTED', run)) as T,
  };
}
