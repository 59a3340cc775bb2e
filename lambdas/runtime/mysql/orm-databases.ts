import {
  type DrizzleQueryable,
  type DrizzleSql,
  drizzleOn,
  type KnexQueryable,
  knexOn,
  type SqlDialect,
} from '../database/orm-databases.ts';
import type { Database } from '../store/sql/database.ts';
import { rowsIn } from './databases.ts';

const MYSQL: SqlDialect = {
  split: (text, values) => ({ parts: text.split('?'), values }),
  // A list of the rows and of their fields. Anything else is refused where rows are read.
  rowsIn: (result) => rowsIn(Array.isArray(result) ? result[0] : undefined),
};

/**
 * The database of Drizzle on `mysql2`.
 *
 * @param sql - the `sql` of `drizzle-orm`
 *
 * @example
 * ```ts
 * import { sql } from 'drizzle-orm';
 * const outbox = createMysqlOutbox({ config, database: drizzle(db, sql) });
 * ```
 */
export function drizzle<Query, Tx extends DrizzleQueryable<Query>>(
  db: DrizzleQueryable<Query> & {
    transaction<T>(run: (tx: Tx) => Promise<T>, config?: { isolationLevel: 'read committed' }): Promise<T>;
  },
  sql: DrizzleSql<Query>,
): Database<Tx> {
  return drizzleOn(MYSQL, db, sql);
}

/**
 * The database of Knex on `mysql2`.
 *
 * @example
 * ```ts
 * const outbox = createMysqlOutbox({ config, database: knex(db) });
 * ```
 */
export function knex<Tx extends KnexQueryable>(
  db: KnexQueryable & {
    transaction<T>(run: (tx: Tx) => Promise<T>, config?: { isolationLevel: 'read committed' }): Promise<T>;
  },
): Database<Tx> {
  return knexOn(MYSQL, db);
}
