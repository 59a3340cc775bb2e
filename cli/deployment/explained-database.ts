import { errorMessage, MailroomError } from '../../lambdas/runtime/base/errors.ts';
import type { Database, Sql, SqlResult } from '../../lambdas/runtime/store/sql/database.ts';

/** The database and the login, for errors. */
export interface Reached {
  readonly place: string;
  readonly login: string;
}

/** The errors of a kind of database, as the command reports them. */
export interface DatabaseErrors {
  /** The command of its schema. */
  readonly command: 'postgres' | 'mysql';
  readonly code: 'BAD_POSTGRES' | 'BAD_MYSQL';
  /** True for an error that names an unknown table or column. */
  isUnknownName(error: unknown): boolean;
  /** True if the schema has the version of this package. */
  isCurrent(sql: Sql): Promise<boolean>;
  /** An error of the database with its remedy; any other error as it is. */
  explained(error: unknown, reached: Reached): unknown;
}

/** A database whose errors name it and the remedy. */
export function explaining<Tx>(
  database: Database<Tx>,
  reached: Reached,
  errors: DatabaseErrors,
): Database<unknown> {
  const { adapter } = database;
  const explainingIn = (sql: Sql): Sql => ({
    adapter,
    query: (text, values): Promise<SqlResult> =>
      sql.query(text, values).catch(async (error: unknown) => {
        throw (await changedSchema(error, sql, reached, errors)) ?? errors.explained(error, reached);
      }),
  });
  return {
    ...explainingIn(database),
    in: (tx) => explainingIn(database.in(tx as Tx)),
    transaction: (run) =>
      database.transaction(run).catch((error: unknown) => {
        throw errors.explained(error, reached);
      }),
  };
}

/** The error of a missing table or column in a schema of this version, which a migration leaves as it is: it was changed by hand. */
async function changedSchema(
  error: unknown,
  sql: Sql,
  { place }: Reached,
  { command, code, isUnknownName, isCurrent }: DatabaseErrors,
): Promise<MailroomError | undefined> {
  if (!isUnknownName(error) || !(await isCurrent(sql).catch(() => false))) return undefined;
  return new MailroomError(
    code,
    `The tables of ${place} have the version of this Mailroom, but were changed by hand (${errorMessage(error)}), and a migration changes nothing. Undo the change. The statements that made the tables: \`npx cdk-mailroom ${command} migrate --sql\`.`,
    { cause: error },
  );
}
