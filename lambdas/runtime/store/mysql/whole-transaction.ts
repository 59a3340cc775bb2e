import { MailroomError } from '../../base/errors.ts';
import type { Sql } from '../sql/database.ts';
import { mysqlErrno } from './mysql-error.ts';

/** The server's error for an unknown savepoint. */
const NO_SAVEPOINT = 1305;

/**
 * Runs the caller's code in a transaction, and fails if that transaction ended while it ran. MySQL ends one without an error if the code catches a
 * deadlock, or runs DDL, START TRANSACTION or LOCK TABLES. Each later statement would then commit alone.
 *
 * A savepoint exists only as long as its transaction. It is released, never rolled back to: that would undo statements that the caller sends at the same
 * time.
 *
 * @param savepoint - a name that no other code sets meanwhile
 * @throws `TRANSACTION_ENDED`; also the error of the code
 */
export async function inOneTransaction<T>(sql: Sql, savepoint: string, run: () => Promise<T>): Promise<T> {
  await sql.query(`SAVEPOINT ${savepoint}`);
  const result = await run();
  if (await hasEnded(sql, savepoint)) throw new MailroomError('TRANSACTION_ENDED', ENDED);
  return result;
}

/** @throws `NO_TRANSACTION` if a connection is in no transaction, and commits each statement */
export async function requireTransaction(sql: Sql): Promise<void> {
  await sql.query('SAVEPOINT mailroom');
  if (await hasEnded(sql, 'mailroom')) throw new MailroomError('NO_TRANSACTION', NO_TRANSACTION);
}

async function hasEnded(sql: Sql, savepoint: string): Promise<boolean> {
  try {
    await sql.query(`RELEASE SAVEPOINT ${savepoint}`);
    return false;
  } catch (error) {
    if (mysqlErrno(error) === NO_SAVEPOINT) return true;
    throw error;
  }
}

const ENDED =
  "Code that runs in Mailroom's transaction ended it: it caught the error of a deadlock, or ran a statement that commits, such as START TRANSACTION, COMMIT, LOCK TABLES or CREATE TABLE. " +
  'Let errors of statements reach Mailroom, and run such statements on a connection of your own.';

const NO_TRANSACTION =
  'The connection is not in a transaction, so an event could be stored without its place in the queue. Begin one, and pass its connection or transaction.';
