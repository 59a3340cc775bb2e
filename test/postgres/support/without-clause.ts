import type { Pool } from 'pg';

/** A clause of a function, and its replacement. */
export type Change = readonly [clause: string, replacement: string];

/**
 * Replaces clauses of a function of the schema for one check.
 *
 * @throws Error if the function has no such clause
 */
export async function withoutClause<T>(
  pool: Pick<Pool, 'query'>,
  name: string,
  changes: readonly Change[],
  check: () => Promise<T>,
): Promise<T> {
  const { rows } = await pool.query(`SELECT pg_get_functiondef('mailroom.${name}'::regproc) AS text`);
  let text: string = rows[0].text;
  for (const [clause, replacement] of changes) {
    if (!text.includes(clause)) throw new Error(`mailroom.${name} has no clause ${clause}`);
    text = text.replaceAll(clause, replacement);
  }
  await pool.query(text);
  try {
    return await check();
  } finally {
    await pool.query(rows[0].text);
  }
}
