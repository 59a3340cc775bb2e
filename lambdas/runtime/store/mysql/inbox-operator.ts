import type { Clock } from '../../base/clock.ts';
import { MailroomError } from '../../base/errors.ts';
import { NO_ROW, REJECTED_AS_TOO_OLD } from '../../inbox/inbox-conditions.ts';
import {
  allowedToRun,
  type DecidedTogether,
  decided,
  type InboxChanges,
  type MessageToDecide,
} from '../../inbox/inbox-operator.ts';
import type { RowsBefore, RowTransition } from '../../inbox/row-transition.ts';
import { type RandomBytes, systemRandomBytes } from '../event-id.ts';
import { LAST_PREFIX } from '../keys.ts';
import type { LastRaise } from '../last-sequence.ts';
import type { Database, Sql } from '../sql/database.ts';
import { readOneRow } from '../sql/sql-rows.ts';
import { readable } from '../stored-rows.ts';
import { epochMs, KEY, NOW, TEXT, textParameter } from './expressions.ts';
import { outcomeOf } from './inbox-outcome.ts';
import { isConflict, isLocked, keyOf, repeated, run } from './inbox-row.ts';
import { insertOf, lockOf, updateOf } from './inbox-writes.ts';
import { holdLast, raiseLast, readLastSequence, writeLast } from './last-sequence.ts';
import { messageRow } from './message-columns.ts';
import { asOperator, type LoggedChange, logChange, type OperatorTransaction } from './operation-log.ts';
import { joined, part, type StatementPart } from './statement.ts';

/** Dependencies of {@link mysqlInboxChanges}. */
export interface MysqlInboxDeps<Tx> {
  readonly database: Database<Tx>;
  readonly clock: Clock;
  /** @default the machine's random source */
  readonly random?: RandomBytes | undefined;
}

/** The row or the last applied sequence is not as it was read: the transaction is rolled back. */
const CHANGED = Symbol('changed');

/** A change of a message. */
interface MysqlDecision {
  readonly from: RowsBefore;
  readonly transition: RowTransition;
  readonly log: Pick<LoggedChange, 'command' | 'reason'>;
  /** A condition of `i` that only this change fulfills. */
  readonly proof: StatementPart;
  readonly together?: DecidedTogether | undefined;
}

/** A message without a row gets this one until the decision is written. No other transaction sees it, unless the work ends this one. */
function placeholder(fence: string): RowTransition {
  return {
    set: { status: 'PROCESSING', type: 'unknown', fence, leaseUntil: 0, endsBy: 0 },
    count: 'kept',
    clear: [],
  };
}

/**
 * The changes of the inboxes in MySQL: the rules of those in DynamoDB, by the database's clock, which has written the leases.
 *
 * *Invariant: a decision without force changes the row only as it was read: its status, its fence, its lease, and its effects.*
 *
 * - Its first statement locks the row in that state, and its last one requires the state again. That one sees every effect that was started before the row was
 *   locked, and none starts after it. An effect that ends meanwhile is still there, in another state: the decision is refused, or it ended after the decision.
 * - A transaction that holds the row longer than `innodb_lock_wait_timeout`, such as a commit, wins: the message is read again.
 * - A message without a row gets one only if it still has none. A worker that inserts it at the same time wins, or finds it final.
 * - The last applied sequence is held before what commits together, and the row and the number are written after it: work that ends the transaction by mistake
 *   leaves the message as it was.
 * - The log has an entry of each change, with the account of the connection, which commits with it.
 * - After a lost answer, only a row of this very change proves that it was made.
 */
export function mysqlInboxChanges<Tx>({
  database,
  clock,
  random = systemRandomBytes,
}: MysqlInboxDeps<Tx>): InboxChanges {
  async function change(consumer: string, eventId: string, wanted: MysqlDecision): Promise<boolean> {
    const { from, transition, log, proof, together: { raise, work } = {} } = wanted;
    const rules = { consumer, clock, random };
    const proved = joined(['SELECT 1 FROM mailroom.inbox i WHERE ', keyOf(rules, eventId), ' AND ', proof]);
    const isOurs = async (sql: Sql) => (await run(sql, proved, {})).length > 0;
    let isSent = false;
    try {
      await database.transaction(async (tx) => {
        const sql = database.in(tx);
        const { fence = '' } = transition.set;
        if (from.absent) {
          await run(sql, insertOf(rules, eventId, placeholder(fence)), {});
          if (!(await isOurs(sql))) throw CHANGED;
        } else if ((await run(sql, lockOf(rules, eventId, from), {})).length === 0) throw CHANGED;
        if (raise !== undefined && !(await holdLast(sql, raise))) throw CHANGED;
        await work?.(tx);
        const now = from.absent ? ({ status: ['PROCESSING'], fence } as const) : from;
        await run(sql, updateOf(rules, eventId, now, transition), {});
        if (!(await isOurs(sql))) throw CHANGED;
        if (raise !== undefined) await writeLast(sql, raise);
        await logChange(sql, { ...log, subject: `${consumer} ${eventId}` });
        // From here on, only the answer to COMMIT can be lost.
        isSent = true;
      });
      return true;
    } catch (error) {
      if (error === CHANGED || isLocked(error) || isConflict(error)) return false;
      if (!isSent) throw error;
      const outcome = await outcomeOf({ database, rules }, eventId, proof);
      if (outcome === 'unknown') throw unknown(consumer, eventId, error);
      if (outcome === 'committed') return true;
      throw error;
    }
  }

  return {
    read: async (consumer, eventId): Promise<MessageToDecide> => {
      // Before the row: a lease that was over then is over when the row is read.
      const { now } = await readOneRow(database, `SELECT ${epochMs(NOW)} AS now`, [], { now: 'number' });
      const row = (await messageRow(database, consumer, eventId))?.row;
      return {
        row,
        order: readable(row)?.order,
        now,
        decide: async (decision, from, together) => {
          if ((together?.writes ?? []).length > 0) throw withoutWrites(consumer);
          const { set, ...ending } = decided({ clock }, decision);
          const isNew = row === undefined;
          const done = await change(consumer, eventId, {
            // By force, too: an insert never replaces a final row.
            from: isNew ? NO_ROW : { ...from, absent: false },
            transition: { ...ending, set: { ...set, type: isNew ? 'unknown' : undefined } },
            log: {
              command: decision.status === 'PROCESSED' ? 'resolve' : 'discard',
              reason: decision.reason,
            },
            proof: part(`i.fence = ${KEY}`, textParameter(decision.fence)),
            together,
          });
          return done ? 'done' : 'changed';
        },
      };
    },
    allow: (consumer, { eventId, ...note }) =>
      change(consumer, eventId, {
        from: REJECTED_AS_TOO_OLD,
        transition: allowedToRun({ clock }, { eventId, ...note }),
        log: { command: 'allow', reason: note.reason },
        proof: part(`i.run_anyway AND i.allowed_reason = ${TEXT}`, textParameter(note.reason)),
      }),
    lastSequence: (key) => readLastSequence(database, key),
    raise: (raise, { reason }) =>
      repeated(() =>
        asOperator({ database, clock, random }, (transaction) => raisedAndLogged(transaction, raise, reason)),
      ).catch((error: unknown) => {
        // A worker that applies an event holds the number, and is about to change it.
        if (isLocked(error)) return false;
        throw error;
      }),
  };
}

async function raisedAndLogged<Tx>(
  { sql, log }: OperatorTransaction<Tx>,
  raise: LastRaise,
  reason: string,
): Promise<boolean> {
  if (!(await raiseLast(sql, raise))) return false;
  const subject = `${raise.key.slice(LAST_PREFIX.length).replace('#', ' ')} ${raise.sequence}`;
  await log({ command: 'order', subject, reason });
  return true;
}

/** An operator's writes of DynamoDB cannot commit with a decision in MySQL. */
export function withoutWrites(consumer: string): MailroomError {
  return new MailroomError(
    'NOT_IN_DATABASE',
    `The inbox of ${consumer} is in MySQL, where no writes of DynamoDB commit with a decision. Nothing was changed.`,
  );
}

function unknown(consumer: string, eventId: string, cause: unknown): MailroomError {
  return new MailroomError(
    'COMMIT_UNKNOWN',
    `The answer to a COMMIT was lost, and the database does not tell whether it was committed. Before you repeat the decision, read the row of ${eventId} at ${consumer} in mailroom.inbox.`,
    { cause },
  );
}
