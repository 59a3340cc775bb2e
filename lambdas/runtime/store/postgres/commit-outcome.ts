import { MailroomError } from '../../base/errors.ts';
import { backoffMs } from '../backoff.ts';
import type { OutcomeDeps } from '../sql/database-outbox.ts';
import { sqlState } from './sql.ts';
import { readOneRow } from './sql-rows.ts';

/** A server ends a transaction whose client is gone after `idle_in_transaction_session_timeout`, 30 seconds. */
const OUTCOME_WAIT_MS = 40_000;

/** The maximum number of questions while a message waits, about 2 seconds: without an answer it is received again. */
const MESSAGE_TRIES = 6;

/** A transaction whose COMMIT failed. */
export interface SentCommit {
  /** From `pg_current_xact_id()` in the transaction. */
  readonly xid: string;
  /** A condition, with parameters from `$2` on, that holds if and only if the transaction was committed. */
  readonly proof: string;
  /** The values of its parameters. */
  readonly values: readonly unknown[];
}

const ANSWER = { status: 'text?', done: 'boolean' } as const;

/**
 * The outcome of a transaction whose COMMIT failed: a lost connection does not tell.
 *
 * *Invariant: it is `committed` only if a row exists that no other transaction writes, and `aborted` only if none ever will.*
 *
 * - A server that crashes forgets the ids of transactions whose log was not on disk, and a promoted standby those that it has not received.
 *   Both assign them again, so `committed` may be the status of another transaction. Only the row tells them apart.
 * - A transaction that is committed keeps its id, and that is never assigned again. So any other final status of the id on a primary, whose
 *   ever it is, proves that this transaction was not committed, and it has ended. The same is true of an id that is not assigned yet.
 * - A standby may lag behind. Its rows prove a commit, but the absence of a row proves nothing.
 * - The row may be deleted by then. So an id that is committed, without the row, is `unknown`.
 *
 * @param isOver - true if it must not ask again, by the number of questions
 */
export async function outcomeOf(
  { database, clock, random }: OutcomeDeps,
  { xid, proof, values }: SentCommit,
  isOver: (tries: number) => boolean = (tries) => tries >= MESSAGE_TRIES,
): Promise<'committed' | 'aborted' | 'unknown'> {
  const question = `SELECT CASE WHEN NOT pg_is_in_recovery() THEN pg_xact_status($1::text::xid8) END AS status, (${proof})::text AS done`;
  let hasEnded = false;
  for (let tries = 1; ; tries += 1) {
    const { status, done } = await readOneRow(database, question, [xid, ...values], ANSWER).catch(
      // 22023, from a primary: the id is not assigned yet.
      (error: unknown) => ({ status: sqlState(error) === '22023' ? 'aborted' : undefined, done: false }),
    );
    if (done) return 'committed';
    if (status === 'aborted') return 'aborted';
    // It may have been committed after the statement had begun, which does not see the row then. The next one does.
    if (hasEnded || isOver(tries)) return 'unknown';
    hasEnded = status === 'committed';
    await clock.sleep(backoffMs(tries, 50, 1_000, random));
  }
}

/**
 * As {@link outcomeOf}; it asks until the transaction has ended, and while the database does not answer.
 *
 * @param cause - the error of the COMMIT
 * @returns true if it was committed, false if it was rolled back
 * @throws `COMMIT_UNKNOWN`
 */
export async function wasCommitted(deps: OutcomeDeps, sent: SentCommit, cause: unknown): Promise<boolean> {
  const endsBy = deps.clock.now() + OUTCOME_WAIT_MS;
  const outcome = await outcomeOf(deps, sent, () => deps.clock.now() >= endsBy);
  if (outcome !== 'unknown') return outcome === 'committed';
  throw new MailroomError(
    'COMMIT_UNKNOWN',
    `The answer to the COMMIT of transaction ${sent.xid} was lost, and the database does not tell whether it was committed. ` +
      'Before you repeat it, look for one of its rows.',
    { cause },
  );
}
