import { MailroomError } from '../../base/errors.ts';
import type { Sql, SqlRow } from './database.ts';

interface ColumnValues {
  text: string;
  /** Absent if the column is NULL. */
  'text?': string | undefined;
  /** Text that the statement has encoded in Base64: the character set of the connection cannot change it. */
  base64: string;
  'base64?': string | undefined;
  number: number;
  'number?': number | undefined;
  boolean: boolean;
}

/** The columns of a statement. Each is cast to text, because drivers differ in what they make of other types. */
export type Columns = Readonly<Record<string, keyof ColumnValues>>;

/** A row with its values. */
export type RowOf<C extends Columns> = { readonly [Name in keyof C]: ColumnValues[C[Name]] };

/**
 * Runs a statement and reads its rows. Every row that Mailroom reads is read here: a plugin, a type parser or a naming strategy of the
 * application must not change what is published or decided.
 *
 * @param columns - none, to learn how many rows a statement with RETURNING has changed
 * @throws `BAD_ROW` if a row has not exactly these columns' values; also the database's error
 */
export async function readRows<C extends Columns>(
  sql: Sql,
  text: string,
  values: readonly unknown[],
  columns: C,
): Promise<RowOf<C>[]> {
  const { rows } = Object(await sql.query(text, values)) as { readonly rows?: unknown };
  if (!Array.isArray(rows)) throw badRow(sql, 'no array of rows');
  return rows.map((row) => readRow(sql, row, columns));
}

/** As {@link readRows}, for a statement that returns one row. */
export async function readOneRow<C extends Columns>(
  sql: Sql,
  text: string,
  values: readonly unknown[],
  columns: C,
): Promise<RowOf<C>> {
  const [row, ...more] = await readRows(sql, text, values, columns);
  if (row === undefined || more.length > 0)
    throw badRow(sql, `${more.length === 0 ? 'no' : 'more than one'} row`);
  return row;
}

function readRow<C extends Columns>(sql: Sql, row: unknown, columns: C): RowOf<C> {
  if (typeof row !== 'object' || row === null) throw badRow(sql, 'a row that is not an object');
  const entries = Object.entries(columns).map(([name, type]) => [
    name,
    columnOf(sql, row as SqlRow, name, type),
  ]);
  return Object.fromEntries(entries) as RowOf<C>;
}

function columnOf(sql: Sql, row: SqlRow, name: string, type: keyof ColumnValues): unknown {
  if (!Object.hasOwn(row, name))
    throw badRow(sql, `no column ${name}, but ${Object.keys(row).join(', ') || 'none'}`);
  const value = row[name];
  if (value === null && type.endsWith('?')) return undefined;
  if (typeof value !== 'string')
    throw badRow(sql, `the column ${name} as ${value === null ? 'NULL' : typeof value}, not as text`);
  if (type === 'boolean') {
    if (value !== 'true' && value !== 'false') throw badRow(sql, `the column ${name} not as true or false`);
    return value === 'true';
  }
  if (type.startsWith('text')) return value;
  if (type.startsWith('base64')) return Buffer.from(value, 'base64').toString();
  const number = Number(value);
  if (value === '' || !Number.isFinite(number)) throw badRow(sql, `the column ${name} not as a number`);
  return number;
}

function badRow({ adapter = 'your Database' }: Sql, returned: string): MailroomError {
  return new MailroomError(
    'BAD_ROW',
    `The adapter ${adapter} returned ${returned}. A plugin, a type parser or a naming strategy changes the results of its queries, for example to camelCase names or parsed JSON. ` +
      'Pass an instance without it.',
  );
}
