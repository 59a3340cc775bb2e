import { MailroomError } from '../base/errors.ts';
import type { Database, Sql, SqlResult, SqlRow } from '../store/postgres/sql.ts';

/** The members that Mailroom uses of a database or transaction of Drizzle. */
export interface DrizzleQueryable<Query> {
  execute(query: Query): PromiseLike<unknown>;
}

/** The members that Mailroom uses of the `sql` of Drizzle. */
export interface DrizzleSql<Query> {
  (strings: TemplateStringsArray, ...values: unknown[]): Query;
  param(value: unknown): unknown;
}

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
  const of = (queryable: DrizzleQueryable<Query>): Sql => ({
    adapter: 'drizzle',
    query: async (text, values = []) => {
      // Drizzle numbers the parameters itself, and would make a list of an array that it is not told to keep.
      const [parts, numbers] = [
        text.split(/\$\d+/),
        [...text.matchAll(/\$(\d+)/g)].map(([, n]) => Number(n)),
      ];
      const strings = Object.assign(parts, { raw: parts }) as unknown as TemplateStringsArray;
      const query = sql(strings, ...numbers.map((n) => sql.param(values[n - 1])));
      // An array from postgres.js, a result with rows from node-postgres.
      const result = await queryable.execute(query);
      const { rows } = (Array.isArray(result) ? { rows: result } : Object(result)) as SqlResult;
      return { rows };
    },
  });
  return {
    ...of(db),
    in: of,
    transaction: (run) => db.transaction(run, { isolationLevel: 'read committed' }),
  };
}

/** The members that Mailroom uses of a database or transaction of Kysely. */
export interface KyselyQueryable<Query> {
  executeQuery(query: Query): Promise<{ readonly rows: unknown[] }>;
  /** Mailroom reads rows without your plugins; your transactions keep them. */
  withoutPlugins(): Pick<KyselyQueryable<Query>, 'executeQuery'>;
}

/**
 * The database of Kysely.
 *
 * @param raw - `CompiledQuery.raw` of `kysely`
 *
 * @example
 * ```ts
 * import { CompiledQuery } from 'kysely';
 * const outbox = createPostgresOutbox({ config, database: kysely(db, CompiledQuery.raw) });
 * ```
 */
export function kysely<Query, Tx extends KyselyQueryable<Query>>(
  db: KyselyQueryable<Query> & {
    transaction(): {
      setIsolationLevel(level: 'read committed'): { execute<T>(run: (tx: Tx) => Promise<T>): Promise<T> };
    };
  },
  raw: (sql: string, parameters?: unknown[]) => Query,
): Database<Tx> {
  const of = (queryable: KyselyQueryable<Query>): Sql => ({
    adapter: 'kysely',
    query: async (text, values = []) => {
      const { rows } = await queryable.withoutPlugins().executeQuery(raw(text, [...values]));
      return { rows: rows as SqlRow[] };
    },
  });
  return {
    ...of(db),
    in: of,
    transaction: (run) => db.transaction().setIsolationLevel('read committed').execute(run),
  };
}

/** The members that Mailroom uses of a client or transaction of Knex. */
export interface KnexQueryable {
  raw(text: string, values: never): PromiseLike<unknown>;
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
  const of = (queryable: KnexQueryable): Sql => ({
    adapter: 'knex',
    query: async (text, values = []) => {
      const numbers = [...text.matchAll(/\$(\d+)/g)].map(([, n]) => Number(n));
      const marked = text.replaceAll('?', '\\?').replaceAll(/\$\d+/g, '?');
      const { rows } = Object(await queryable.raw(marked, numbers.map((n) => values[n - 1]) as never));
      return { rows };
    },
  });
  return {
    ...of(db),
    in: of,
    transaction: (run) => db.transaction(run, { isolationLevel: 'read committed' }),
  };
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

/** The members that Mailroom uses of an entity manager of TypeORM. */
export interface TypeOrmManager {
  readonly queryRunner?:
    | { query(text: string, values: unknown[], structured: true): Promise<TypeOrmResult> }
    | undefined;
}

/** The structured result of a query of TypeORM. */
export interface TypeOrmResult {
  /** The returned rows. */
  readonly records: unknown[];
}

/**
 * The database of a data source of TypeORM.
 *
 * @example
 * ```ts
 * const outbox = createPostgresOutbox({ config, database: typeOrm(dataSource) });
 * ```
 */
export function typeOrm<Manager extends TypeOrmManager>(dataSource: {
  transaction<T>(isolation: 'READ COMMITTED', run: (manager: Manager) => Promise<T>): Promise<T>;
}): Database<Manager> {
  const transaction = <T>(run: (manager: Manager) => Promise<T>) =>
    dataSource.transaction('READ COMMITTED', run);
  const of = ({ queryRunner }: Manager): Sql => ({
    adapter: 'typeOrm',
    query: async (text, values = []) => {
      if (queryRunner === undefined) throw new MailroomError('BAD_ARGUMENT', NO_TRANSACTION);
      // Without the structured result, an UPDATE has another shape than an INSERT.
      const { records } = await queryRunner.query(text, [...values], true);
      return { rows: records as SqlRow[] };
    },
  });
  return {
    adapter: 'typeOrm',
    in: of,
    query: (text, values) => transaction((manager) => of(manager).query(text, values)),
    transaction,
  };
}

const NO_TRANSACTION =
  'The entity manager has no transaction. Pass the manager that dataSource.transaction gives to its function.';
