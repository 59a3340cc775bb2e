import { MailroomError } from '../../base/errors.ts';
import type { Sql } from '../sql/database.ts';
import { readRows } from '../sql/sql-rows.ts';
import { booleanText } from './expressions.ts';
import { isRepeatable, mysqlErrno } from './mysql-error.ts';

/** The server's error for an unknown savepoint. */
const NO_SAVEPOINT = 1305;

/** Errors with which the server rolls back the whole transaction: a deadlock (1213), and a row that changed after the snapshot of MariaDB (1020). */
const ROLLS_BACK: ReadonlySet<number> = new Set([1020, 1213]);

/** A lock was not released in time: the server undoes the statement, or the whole transaction. */
const LOCK_TIMEOUT = 1205;

/**
 * Runs the caller's code in a transaction, and fails if that transaction ended while it ran. MySQL ends one without an error if the code catches a
 * deadlock, or runs DDL, START TRANSACTION or LOCK TABLES. Each later statement would then commit alone.
 *
 * *Invariant: code that has committed a part of its work is never repeated by Mailroom.* So code that throws is asked as well, unless its error is one with
 * which the server rolls the transaction back. Such an error hides what the code committed before it: then, too, no savepoint is left.
 *
 * A savepoint exists only as long as its transaction. It is released, never rolled back to: that would undo statements that the caller sends at the same
 * time.
 *
 * @param savepoint - a name that no other code sets meanwhile
 * @throws `TRANSACTION_ENDED`, with the error of the code as its cause; also that error itself
 */
export async function inOneTransaction<T>(sql: Sql, savepoint: string, run: () => Promise<T>): Promise<T> {
  await sql.query(`SAVEPOINT ${savepoint}`);
  let result: T;
  try {
    result = await run();
  } catch (error) {
    if (await hasEndedBefore(sql, savepoint, error)) throw ended(error);
    throw error;
  }
  if (await hasEnded(sql, savepoint)) throw ended();
  return result;
}

/** Returns true if the transaction of code that threw this error was ended by the code, and not by the error. */
async function hasEndedBefore(sql: Sql, savepoint: string, error: unknown): Promise<boolean> {
  try {
    return !(await isRolledBackBy(sql, error)) && (await hasEnded(sql, savepoint));
  } catch (unanswered) {
    // The connection is gone: an error that would repeat the code does not replace that.
    throw isRepeatable(error) ? unanswered : error;
  }
}

async function isRolledBackBy(sql: Sql, error: unknown): Promise<boolean> {
  const errno = mysqlErrno(error) ?? 0;
  return ROLLS_BACK.has(errno) || (errno === LOCK_TIMEOUT && (await rollsBackOnTimeout(sql)));
}

/** `innodb_rollback_on_timeout` is set when the server starts. */
async function rollsBackOnTimeout(sql: Sql): Promise<boolean> {
  const setting = booleanText('@@GLOBAL.innodb_rollback_on_timeout');
  const [row] = await readRows(sql, `SELECT ${setting} AS is_on`, [], { is_on: 'boolean' });
  return row?.is_on === true;
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

function ended(cause?: unknown): MailroomError {
  return new MailroomError('TRANSACTION_ENDED', ENDED, { cause });
}

const ENDED =
  "Code that runs in Mailroom's transaction ended it: it caught the error of a deadlock, or ran a statement that commits, such as START TRANSACTION, COMMIT, LOCK TABLES or CREATE TABLE. " +
  'Let errors of statements reach Mailroom, and run such statements on a connection of your own.';

const NO_TRANSACTION =
  'The connection is not in a transaction, so an event could be stored without its place in the queue. Begin one, and pass its connection or transaction.';
