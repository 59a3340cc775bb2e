import { MailroomError } from '../base/errors.ts';
import type { Database, Sql, SqlRow } from '../store/sql/database.ts';

/** The form of the statements and results of one kind of database. */
export interface SqlDialect {
  /** Splits a statement at its parameters. @returns also the value of each */
  split(
    text: string,
    values: readonly unknown[],
  ): { readonly parts: readonly string[]; readonly values: readonly unknown[] };
  /** The rows in what the driver below a layer has returned. */
  rowsIn(result: unknown): readonly SqlRow[];
}

/** The members that Mailroom uses of a database or transaction of Drizzle. */
export interface DrizzleQueryable<Query> {
  execute(query: Query): PromiseLike<unknown>;
}

/** The members that Mailroom uses of the `sql` of Drizzle. */
export interface DrizzleSql<Query> {
  (strings: TemplateStringsArray, ...values: unknown[]): Query;
  param(value: unknown): unknown;
}

/** The database of Drizzle. */
export function drizzleOn<Query, Tx extends DrizzleQueryable<Query>>(
  { split, rowsIn }: SqlDialect,
  db: DrizzleQueryable<Query> & {
    transaction<T>(run: (tx: Tx) => Promise<T>, config?: { isolationLevel: 'read committed' }): Promise<T>;
  },
  sql: DrizzleSql<Query>,
): Database<Tx> {
  const of = (queryable: DrizzleQueryable<Query>): Sql => ({
    adapter: 'drizzle',
    query: async (text, values = []) => {
      // Drizzle numbers the parameters itself, and would make a list of an array that it is not told to keep.
      const { parts, values: each } = split(text, values);
      const strings = Object.assign([...parts], { raw: parts }) as unknown as TemplateStringsArray;
      const query = sql(strings, ...each.map((value) => sql.param(value)));
      return { rows: rowsIn(await queryable.execute(query)) };
    },
  });
  return {
    ...of(db),
    in: of,
    transaction: (run) => db.transaction(run, { isolationLevel: 'read committed' }),
  };
}

/** The members that Mailroom uses of a client or transaction of Knex. */
export interface KnexQueryable {
  raw(text: string, values: never): PromiseLike<unknown>;
}

/** The database of Knex. */
export function knexOn<Tx extends KnexQueryable>(
  { split, rowsIn }: SqlDialect,
  db: KnexQueryable & {
    transaction<T>(run: (tx: Tx) => Promise<T>, config?: { isolationLevel: 'read committed' }): Promise<T>;
  },
): Database<Tx> {
  const of = (queryable: KnexQueryable): Sql => ({
    adapter: 'knex',
    query: async (text, values = []) => {
      const { parts, values: each } = split(text, values);
      const marked = parts.map((part) => part.replaceAll('?', '\\?')).join('?');
      return { rows: rowsIn(await queryable.raw(marked, [...each] as never)) };
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
 * const database = kysely(db, CompiledQuery.raw);
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
 * const database = typeOrm(dataSource);
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
