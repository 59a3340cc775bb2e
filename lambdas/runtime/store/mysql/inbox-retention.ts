import type { Sql } from '../sql/database.ts';
import { encoded, KEY, NOW, textParameter } from './expressions.ts';
import { run } from './inbox-row.ts';
import { part } from './statement.ts';

/** The most rows that one transaction deletes, so that none is long. */
export const DELETED_AT_ONCE = 250;

/** Only final rows have an end. */
const EXPIRED = `SELECT ${encoded('consumer')} AS consumer, ${encoded('event_id')} AS event_id FROM mailroom.inbox
  WHERE expires_at < ${NOW} ORDER BY expires_at LIMIT ${DELETED_AT_ONCE} FOR UPDATE SKIP LOCKED`;

/**
 * Deletes messages whose retention is over, with their effects, at most {@link DELETED_AT_ONCE} at a time. Each is looked up by its key: a list in
 * one statement may be read by a scan, which waits for rows that others have locked.
 *
 * @param sql - a transaction
 * @returns the number of deleted messages; call it again while it is that many
 */
export async function deleteExpiredMessages(sql: Sql): Promise<number> {
  const expired = await run(sql, part(EXPIRED), { consumer: 'base64', event_id: 'base64' });
  for (const { consumer, event_id } of expired)
    for (const table of ['effect', 'inbox']) {
      const key = [consumer, event_id].map(textParameter);
      await run(
        sql,
        part(`DELETE FROM mailroom.${table} WHERE consumer = ${KEY} AND event_id = ${KEY}`, ...key),
        {},
      );
    }
  return expired.length;
}
