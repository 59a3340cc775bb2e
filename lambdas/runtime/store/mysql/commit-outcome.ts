import { MailroomError } from '../../base/errors.ts';
import { backoffMs } from '../backoff.ts';
import type { OutcomeDeps } from '../sql/database-outbox.ts';
import { readOneRow } from '../sql/sql-rows.ts';
import { booleanText, ID, idParameter } from './expressions.ts';
import { IS_REPLICA } from './primary-view.ts';

/** A locking read waits for `innodb_lock_wait_timeout`, 50 seconds, so a question may take longer than this. */
const OUTCOME_WAIT_MS = 40_000;

/** The key of a table's rows, and its parameter. */
const KEYS = { event: ['event_id', ID], commit: ['commit_id', ID], captured: ['event_id', '?'] } as const;

/** A row that only one transaction has written. */
export interface CommitProof {
  readonly table: keyof typeof KEYS;
  /** A UUID. */
  readonly id: string;
}

/**
 * Reads the row, and whether the server is a replica. It waits for the lock that the transaction holds on the row until it ends.
 */
function question(table: CommitProof['table']): string {
  const [column, parameter] = KEYS[table];
  return `SELECT ${booleanText(`w.${column} IS NOT NULL`)} AS done, ${booleanText(IS_REPLICA)} AS is_replica
FROM (SELECT 1 AS one) o LEFT JOIN mailroom.${table} w ON w.${column} = ${parameter} LOCK IN SHARE MODE`;
}

/**
 * The outcome of a transaction whose COMMIT failed: a lost connection does not tell.
 *
 * *Invariant: a row proves that it was committed, and a primary that waited for the lock on that row and found none proves that it was not.* A transaction
 * holds the lock on a row that it has inserted until it ends. A replica may lag behind: there, a missing row proves nothing.
 *
 * @param cause - the error of the COMMIT
 * @throws `COMMIT_UNKNOWN`
 */
export async function wasCommitted(
  { database, clock, random }: OutcomeDeps,
  { table, id }: CommitProof,
  cause: unknown,
): Promise<boolean> {
  const endsBy = clock.now() + OUTCOME_WAIT_MS;
  for (let tries = 1; ; tries += 1) {
    const answer = await readOneRow(
      database,
      question(table),
      [table === 'captured' ? id : idParameter(id)],
      {
        done: 'boolean',
        is_replica: 'boolean',
      },
    ).catch(() => undefined);
    if (answer?.done) return true;
    if (answer !== undefined && !answer.is_replica) return false;
    if (clock.now() >= endsBy) break;
    await clock.sleep(backoffMs(tries, 50, 1_000, random));
  }
  throw new MailroomError(
    'COMMIT_UNKNOWN',
    `The answer to a COMMIT was lost, and the database does not tell whether it was committed. Before you repeat the transaction, look for the row ${id} in mailroom.${table}.`,
    { cause },
  );
}
