import { MailroomError } from '../../base/errors.ts';
import { checkedView } from '../sql/checked-view.ts';
import type { Sql } from '../sql/database.ts';
import { readOneRow } from '../sql/sql-rows.ts';
import { booleanText } from './expressions.ts';

/** The server does not take changes, as a replica. */
export const IS_REPLICA = ['read_only', 'innodb_read_only']
  .map((name) => `CAST(@@global.${name} AS CHAR) NOT IN ('0', 'OFF')`)
  .join(' OR ');

/**
 * Returns an {@link Sql} whose first query finds out whether the server is a primary. Its queries throw `BAD_DATABASE` if it is not: a replica
 * may lag behind, and what it has not received yet would count as absent.
 *
 * @param place - of the server, for the error
 */
export function primaryView(sql: Sql, place: string): Sql {
  return checkedView(sql, async () => {
    const text = `SELECT ${booleanText(IS_REPLICA)} AS is_replica`;
    const { is_replica } = await readOneRow(sql, text, [], { is_replica: 'boolean' });
    if (!is_replica) return;
    throw new MailroomError(
      'BAD_DATABASE',
      `MySQL at ${place} is read-only, as a replica: it may lag behind, and what it has not received yet would count as absent. Connect to the primary.`,
    );
  });
}
