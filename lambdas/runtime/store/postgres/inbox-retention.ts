import type { Sql } from './sql.ts';
import { readOneRow } from './sql-rows.ts';

/** The most rows that one statement deletes, so that no transaction is long. */
export const DELETED_AT_ONCE = 1_000;

/** Only final rows have an end; a row that a statement before has deleted is not counted. */
const DELETE = `WITH gone AS (
    DELETE FROM mailroom.inbox WHERE (consumer, event_id) IN (
      SELECT consumer, event_id FROM mailroom.inbox WHERE expires_at < statement_timestamp() ORDER BY expires_at LIMIT ${DELETED_AT_ONCE})
    RETURNING consumer, event_id
  ), effects AS (
    DELETE FROM mailroom.effect e USING gone WHERE e.consumer = gone.consumer AND e.event_id = gone.event_id
  )
  SELECT count(*)::text AS deleted FROM gone`;

/**
 * Deletes messages whose retention is over, with their effects, at most 1,000 at a time. The relay's role may do that.
 *
 * @returns the number of deleted messages; call it again while it is 1,000
 */
export async function deleteExpiredMessages(sql: Sql): Promise<number> {
  return (await readOneRow(sql, DELETE, [], { deleted: 'number' })).deleted;
}
