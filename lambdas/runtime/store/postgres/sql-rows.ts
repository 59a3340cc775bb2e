import type { Sql, SqlRow } from '../sql/database.ts';
import { readRows } from '../sql/sql-rows.ts';

export { type Columns, type RowOf, readOneRow, readRows } from '../sql/sql-rows.ts';

/** As {@link readRows}, for a query with columns of other types. @returns its rows as objects of JSON */
export async function readJsonRows(
  sql: Sql,
  query: string,
  values: readonly unknown[] = [],
): Promise<SqlRow[]> {
  const text = `SELECT pg_catalog.row_to_json(r)::text AS as_json FROM (${query}) AS r`;
  const rows = await readRows(sql, text, values, { as_json: 'text' });
  return rows.map(({ as_json }) => JSON.parse(as_json));
}
