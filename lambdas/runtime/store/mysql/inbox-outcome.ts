import type { InboxRules } from '../../inbox/inbox.ts';
import { backoffMs } from '../backoff.ts';
import type { Sql } from '../sql/database.ts';
import { readOneRow } from '../sql/sql-rows.ts';
import { booleanText, KEY, textParameter } from './expressions.ts';
import { keyOf } from './inbox-row.ts';
import { joined, part, type StatementPart } from './statement.ts';

/** The maximum number of questions, about 2 seconds: without an answer the message is received again. */
const OUTCOME_TRIES = 6;

/** The server on which the question is asked may write. */
const IS_PRIMARY = ['read_only', 'innodb_read_only']
  .map((name) => `CAST(@@global.${name} AS CHAR) IN ('0', 'OFF')`)
  .join(' AND ');

/** Storage of the message that the transaction has written. */
interface OutcomeContext {
  readonly database: Sql;
  readonly rules: Pick<InboxRules, 'consumer' | 'clock' | 'random'>;
}

/** The condition for a row that the commit with this fence has ended. */
export function processedBy(fence: string): StatementPart {
  return part(`i.status = 'PROCESSED' AND i.fence = ${KEY}`, textParameter(fence));
}

/**
 * The outcome of a transaction whose COMMIT failed: a lost connection does not tell.
 *
 * *Invariant: it is `committed` only if a row exists that no other transaction writes, and `aborted` only if none ever will.*
 *
 * - Each run has its own fence, so a row that has it in its final state was written by this transaction.
 * - The transaction holds the message's row from its first statement to its end. A read that gets the lock on the row, or finds no row, proves that
 *   the transaction has ended. A transaction that still runs makes the question fail (`NOWAIT`), and it is asked again.
 * - A replica may lag behind: there, a row proves a commit, and a missing row proves nothing.
 *
 * @param proof - a condition of `i` that only this transaction fulfills
 */
export async function outcomeOf(
  { database, rules }: OutcomeContext,
  eventId: string,
  proof: StatementPart,
): Promise<'committed' | 'aborted' | 'unknown'> {
  const { text, values } = joined([
    `SELECT ${booleanText(IS_PRIMARY)} AS is_primary, IF(COUNT(CASE WHEN `,
    proof,
    " THEN 1 END) > 0, 'true', 'false') AS is_done FROM mailroom.inbox i WHERE ",
    keyOf(rules, eventId),
    ' FOR UPDATE NOWAIT',
  ]);
  for (let tries = 1; ; tries += 1) {
    const columns = { is_primary: 'boolean', is_done: 'boolean' } as const;
    const answer = await readOneRow(database, text, values, columns).catch(() => undefined);
    if (answer?.is_done) return 'committed';
    if (answer?.is_primary) return 'aborted';
    if (tries >= OUTCOME_TRIES) return 'unknown';
    await rules.clock.sleep(backoffMs(tries, 50, 1_000, rules.random));
  }
}
