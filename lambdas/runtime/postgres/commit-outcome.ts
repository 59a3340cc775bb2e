import type { Clock } from '../base/clock.ts';
import { MailroomError } from '../base/errors.ts';
import type { RandomBytes } from '../store/event-id.ts';
import { backoffMs } from '../store/retry.ts';
import type { Sql } from './sql.ts';
import { readRows } from './sql-rows.ts';

/** A server ends a transaction whose client is gone after `idle_in_transaction_session_timeout`, 30 seconds. */
const OUTCOME_WAIT_MS = 40_000;

const STATUS = 'SELECT pg_xact_status($1::text::xid8) AS status';

/**
 * Asks the database how a transaction ended whose COMMIT failed: a lost connection does not tell. It asks until the transaction has
 * ended, and while the database does not answer.
 *
 * @param xid - from `pg_current_xact_id()` in the transaction
 * @param cause - the error of the COMMIT
 * @returns true if it was committed, false if it was rolled back
 * @throws `COMMIT_UNKNOWN`
 */
export async function commitOutcome(
  {
    database,
    clock,
    random,
  }: { readonly database: Sql; readonly clock: Clock; readonly random: RandomBytes },
  xid: string,
  cause: unknown,
): Promise<boolean> {
  const endsBy = clock.now() + OUTCOME_WAIT_MS;
  for (let attempt = 1; clock.now() < endsBy; attempt += 1) {
    const status = await readRows(database, STATUS, [xid], { status: 'text?' }).then(
      ([found]) => found?.status,
      () => undefined,
    );
    if (status === 'committed') return true;
    if (status === 'aborted') return false;
    await clock.sleep(backoffMs(attempt, 50, 1_000, random));
  }
  throw new MailroomError(
    'COMMIT_UNKNOWN',
    `The answer to the COMMIT of transaction ${xid} was lost, and the database did not tell within ${OUTCOME_WAIT_MS / 1_000} seconds whether it was committed. ` +
      'Before you repeat it, look for one of its rows.',
    { cause },
  );
}
