import { randomUUID } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import { mintEventId, type RandomBytes } from '../event-id.ts';
import type { Database, Sql } from '../sql/database.ts';
import { readOneRow } from '../sql/sql-rows.ts';
import { type CommitProof, wasCommitted } from './commit-outcome.ts';
import { encoded, ID, idParameter, KEY, NOW, TEXT, textParameter } from './expressions.ts';

/** Dependencies of an operator's changes in MySQL. */
export interface OperatorDeps<Tx> {
  readonly database: Database<Tx>;
  readonly clock: Clock;
  readonly random: RandomBytes;
}

/** An operator's change, as the log has it. */
export interface LoggedChange {
  /** Such as `requeue`. */
  readonly command: string;
  /** An event id, or a consumer and an event id. */
  readonly subject: string;
  readonly reason: string;
}

/** A subject is cut: a consumer and an event id may have 512 characters each. */
const LOG = `INSERT INTO mailroom.operation (at, token, operator, command, subject, reason)
  VALUES (TIMESTAMP(${NOW}, 0), ${KEY}, ${TEXT}, CONCAT('mysql ', ${TEXT}), LEFT(${TEXT}, 512), ${TEXT})`;

/** Reads the account of the connection, which no client can choose. */
export async function accountOf(sql: Sql): Promise<string> {
  const text = `SELECT ${encoded('CONVERT(CURRENT_USER() USING utf8mb4)')} AS account`;
  return (await readOneRow(sql, text, [], { account: 'base64' })).account;
}

/** Enters a change in the log, in the transaction that makes it. */
export async function logChange(sql: Sql, { command, subject, reason }: LoggedChange): Promise<void> {
  const account = await accountOf(sql);
  await sql.query(LOG, [randomUUID(), account, command, subject, reason].map(textParameter));
}

/** A transaction of an operator, before its commit. */
export interface OperatorTransaction<Tx> {
  readonly tx: Tx;
  readonly sql: Sql;
  /** Enters a change of this transaction in the log. */
  log(change: LoggedChange): Promise<void>;
}

/**
 * Runs an operator's change in a transaction.
 *
 * *Invariant: rows are changed if and only if the log has an entry with the name of the account, and the result is that of a change if and only if
 * its transaction was committed.* A lost answer to COMMIT is resolved by a row of `commit` that only this transaction has written.
 *
 * @param run - what it returns says whether it has changed something
 * @throws `COMMIT_UNKNOWN`; any other error has changed nothing
 */
export async function asOperator<Tx, T>(
  { database, clock, random }: OperatorDeps<Tx>,
  run: (transaction: OperatorTransaction<Tx>) => Promise<T>,
): Promise<T> {
  let sent: { readonly proof: CommitProof; readonly result: T } | undefined;
  try {
    return await database.transaction(async (tx) => {
      sent = undefined;
      const sql = database.in(tx);
      let isChanged = false;
      const log = async (change: LoggedChange) => {
        isChanged = true;
        await logChange(sql, change);
      };
      const result = await run({ tx, sql, log });
      // Without a change, nothing has to be proved.
      if (!isChanged) return result;
      const proof: CommitProof = { table: 'commit', id: mintEventId(clock.now(), 256, random) };
      await sql.query(`INSERT INTO mailroom.commit (commit_id) VALUES (${ID})`, [idParameter(proof.id)]);
      // From here on, only the answer to COMMIT can be lost.
      sent = { proof, result };
      return result;
    });
  } catch (error) {
    if (sent !== undefined && (await wasCommitted({ database, clock, random }, sent.proof, error)))
      return sent.result;
    throw error;
  }
}
