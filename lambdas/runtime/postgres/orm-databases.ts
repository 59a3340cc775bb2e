import {
  type DrizzleQueryable,
  type DrizzleSql,
  drizzleOn,
  type KnexQueryable,
  knexOn,
  type SqlDialect,
} from '../database/orm-databases.ts';
import type { Database, Sql, SqlResult, SqlRow } from '../store/sql/database.ts';

const POSTGRES: SqlDialect = {
  split: (text, values) => ({
    parts: text.split(/\$\d+/),
    values: [...text.matchAll(/\$(\d+)/g)].map(([, n]) => values[Number(n) - 1]),
  }),
  // An array from postgres.js, a result with rows from node-postgres.
  rowsIn: (result) => (Array.isArray(result) ? result : (Object(result) as SqlResult).rows),
};

/**
 * The database of Drizzle on node-postgres.
 *
 * @param sql - the `sql` of `drizzle-orm`
 *
 * @example
 * ```ts
 * import { sql } from 'drizzle-orm';
 * const outbox = createPostgresOutbox({ config, database: drizzle(db, sql) });
 * ```
 */
export function drizzle<Query, Tx extends DrizzleQueryable<Query>>(
  db: DrizzleQueryable<Query> & {
    transaction<T>(run: (tx: Tx) => Promise<T>, config?: { isolationLevel: 'read committed' }): Promise<T>;
  },
  sql: DrizzleSql<Query>,
): Database<Tx> {
  return drizzleOn(POSTGRES, db, sql);
}

/**
 * The database of Knex on `pg`.
 *
 * @example
 * ```ts
 * const outbox = createPostgresOutbox({ config, database: knex(db) });
 * ```
 */
export function knex<Tx extends KnexQueryable>(
  db: KnexQueryable & {
    transaction<T>(run: (tx: Tx) => Promise<T>, config?: { isolationLevel: 'read committed' }): Promise<T>;
  },
): Database<Tx> {
  return knexOn(POSTGRES, db);
}

/** The members that Mailroom uses of a client or transaction of Prisma. */
export interface PrismaQueryable {
  $queryRawUnsafe(text: string, ...values: unknown[]): Promise<unknown>;
}

/**
 * The database of Prisma.
 *
 * @example
 * ```ts
 * const outbox = createPostgresOutbox({ config, database: prisma(new PrismaClient()) });
 * ```
 */
export function prisma<Tx extends PrismaQueryable>(
  client: PrismaQueryable & {
    $transaction<T>(run: (tx: Tx) => Promise<T>, options?: { isolationLevel: 'ReadCommitted' }): Promise<T>;
  },
): Database<Tx> {
  const of = (queryable: PrismaQueryable): Sql => ({
    adapter: 'prisma',
    query: async (text, values = []) => {
      const rows = (await queryable.$queryRawUnsafe(text, ...values)) as SqlRow[];
      return { rows };
    },
  });
  return {
    ...of(client),
    in: of,
    transaction: (run) => client.$transaction(run, { isolationLevel: 'ReadCommitted' }),
  };
}
