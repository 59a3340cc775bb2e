import type { Sql } from './database.ts';

/**
 * Returns an {@link Sql} whose first query waits for a check. If that throws, so does the query, and the next one checks again: a page runs for
 * long.
 */
export function checkedView(sql: Sql, check: () => Promise<void>): Sql {
  let checked: Promise<void> | undefined;
  return {
    adapter: sql.adapter,
    query: async (text, values) => {
      checked ??= check();
      await checked.catch((error: unknown) => {
        checked = undefined;
        throw error;
      });
      return sql.query(text, values);
    },
  };
}
