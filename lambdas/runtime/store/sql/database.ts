/** The result of one SQL statement. */
export interface SqlResult {
  /** The rows that it returned. */
  readonly rows: readonly SqlRow[];
}

/** A row, by column. Values are what the driver makes of them; Mailroom accepts only text. */
export type SqlRow = Readonly<Record<string, unknown>>;

/** Runs SQL statements: in a transaction, or each in its own. */
export interface Sql {
  /** The name of the adapter, for errors. */
  readonly adapter?: string | undefined;
  /**
   * Runs one statement.
   *
   * @param values - of its parameters: `$1`, `$2` and so on of PostgreSQL, each `?` of MySQL
   * @throws the driver's error
   */
  query(text: string, values?: readonly unknown[]): Promise<SqlResult>;
}

/**
 * A database, as a driver or an ORM reaches it. Mailroom imports none of them: pass yours to the function that is named after it, such as
 * {@link nodePostgres} or {@link mysql2}.
 *
 * @typeParam Tx - the transaction of that driver
 */
export interface Database<Tx> extends Sql {
  /** Runs statements inside a transaction of yours. */
  in(tx: Tx): Sql;
  /** Runs a function in a READ COMMITTED transaction: commits it, or rolls it back if the function throws. */
  transaction<T>(run: (tx: Tx) => Promise<T>): Promise<T>;
}
