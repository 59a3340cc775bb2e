import { isStale, mysqlErrno } from '../store/mysql/mysql-error.ts';
import type { Database, Sql, SqlRow } from '../store/sql/database.ts';

/** The options of a query of `mysql2` that Mailroom sets: those of your pool must not change the rows that it reads. */
export interface Mysql2Query {
  readonly sql: string;
  readonly values: unknown[];
  readonly rowsAsArray: false;
  readonly nestTables: false;
  readonly namedPlaceholders: false;
  readonly typeCast: (field: unknown, next: () => unknown) => unknown;
}

/** The members that Mailroom uses of a connection of `mysql2/promise`. */
export interface Mysql2Queryable {
  query(options: Mysql2Query): Promise<readonly [unknown, ...unknown[]]>;
}

/** The members that Mailroom uses of a connection that a pool of `mysql2/promise` has lent. */
export interface Mysql2Connection extends Mysql2Queryable {
  release(): void;
  destroy(): void;
}

/** The members that Mailroom uses of a pool of `mysql2/promise`. */
export interface Mysql2Pool<Connection extends Mysql2Connection> extends Mysql2Queryable {
  getConnection(): Promise<Connection>;
}

/**
 * The database of a pool of `mysql2/promise`. A connection at a server that is read-only, stopping or gone never returns to the pool.
 *
 * @example
 * ```ts
 * import { createPool } from 'mysql2/promise';
 * const outbox = createMysqlOutbox({ config, database: mysql2(createPool(url)) });
 * ```
 */
export function mysql2<Connection extends Mysql2Connection>(
  pool: Mysql2Pool<Connection>,
): Database<Connection> {
  return {
    ...mysql2Sql(pool),
    in: mysql2Sql,
    transaction: async (run) => {
      const connection = await pool.getConnection();
      const sql = mysql2Sql(connection);
      try {
        await begin(sql);
        const result = await run(connection);
        await sql.query('COMMIT');
        connection.release();
        return result;
      } catch (error) {
        if (isStale(error) || !(await canWriteAgain(sql))) connection.destroy();
        else connection.release();
        throw error;
      }
    },
  };
}

/** The server's error for settings of a transaction inside one. */
const IN_TRANSACTION = 1568;

/**
 * Begins a transaction whose locks are only those of the rows that it changes. It sets nothing on the session. If the last user of the connection
 * gave it back inside a transaction, that is rolled back: START TRANSACTION would commit it.
 */
async function begin(sql: Sql): Promise<void> {
  const isolate = () => sql.query('SET TRANSACTION ISOLATION LEVEL READ COMMITTED');
  await isolate().catch(async (error: unknown) => {
    if (mysqlErrno(error) !== IN_TRANSACTION) throw error;
    await sql.query('ROLLBACK');
    await isolate();
  });
  await sql.query('START TRANSACTION');
}

/**
 * Rolls back. A connection that cannot roll back is closed: its transaction ends with it. A failover may have made its server read-only,
 * although the error of that statement was replaced by another one.
 */
async function canWriteAgain(sql: Sql): Promise<boolean> {
  try {
    await sql.query('ROLLBACK');
    const { rows } = await sql.query('SELECT @@global.read_only + @@global.innodb_read_only AS read_only');
    return Number(Object.values(rows[0] ?? {})[0]) === 0;
  } catch {
    return false;
  }
}

function mysql2Sql(queryable: Mysql2Queryable): Sql {
  return {
    adapter: 'mysql2',
    query: async (text, values = []) => {
      const [rows] = await queryable.query({
        sql: text,
        values: [...values],
        rowsAsArray: false,
        nestTables: false,
        namedPlaceholders: false,
        typeCast: (_field, next) => next(),
      });
      return { rows: rowsIn(rows) };
    },
  };
}

/** The rows that `mysql2` returns: a statement without rows has a header instead. Anything else is left as it is, and refused where rows are read. */
export function rowsIn(result: unknown): readonly SqlRow[] {
  return typeof Object(result).affectedRows === 'number' && !Array.isArray(result)
    ? []
    : (result as SqlRow[]);
}
