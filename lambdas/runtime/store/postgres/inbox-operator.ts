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
import type { LastRaise } from '../last-sequence.ts';
import type { OutcomeDeps } from '../sql/database-outbox.ts';
import { readable } from '../stored-rows.ts';
import { type SentCommit, wasCommitted } from './commit-outcome.ts';
import { epochMs, isConflict, isLocked, onceMore, run } from './inbox-row.ts';
import { transitionOf } from './inbox-writes.ts';
import { raiseAsOperator, readLastSequence } from './last-sequence.ts';
import { messageRow } from './message-columns.ts';
import type { Database, Sql } from './sql.ts';
import { readOneRow } from './sql-rows.ts';

/** Dependencies of {@link postgresInboxChanges}. */
export interface PostgresInboxDeps<Tx> {
  readonly database: Database<Tx>;
  /** Reads; it must see every row of the inboxes. */
  readonly whole: Sql;
  readonly clock: Clock;
  /** @default the machine's random source */
  readonly random?: RandomBytes | undefined;
  /** Raises the last applied sequence of an aggregate. @default by the rights of an operator */
  readonly raise?: (sql: Sql, raise: LastRaise, reason: string) => Promise<boolean>;
}

/** Until the transaction ends, no worker claims, renews, commits or takes over the message, or starts an effect of it. */
const LOCK =
  'SELECT 1 FROM mailroom.inbox WHERE consumer = $1::text AND event_id = $2::text FOR NO KEY UPDATE';

const XID = 'pg_current_xact_id()::text AS xid';

/** The last applied sequence has changed since it was read: the transaction is rolled back. */
const OVERTAKEN = Symbol('overtaken');

/** A change of a message. */
interface DecisionWrite {
  readonly from: RowsBefore;
  readonly transition: RowTransition;
  /** A condition of `i`, with its value in `$4`, that only this change fulfills. */
  readonly proof: string;
  readonly token: string;
  readonly reason: string;
  readonly together?: DecidedTogether | undefined;
}

/**
 * The changes of the inboxes in PostgreSQL: the rules of those in DynamoDB, by the database's clock, which has written the leases.
 *
 * *Invariant: a decision without force changes the row only as it was read: its status, its fence, its lease, and its effects.*
 *
 * - A statement before it locks the row. The decision's own statement then sees every effect that was started before, and none starts until the end.
 *   An effect that ends meanwhile is still there, in another state: the decision is refused, or it ended after the decision.
 * - A transaction that holds the row longer than `lock_timeout`, such as a commit, wins: the message is read again.
 * - A message without a row gets one only if it still has none. A worker that inserts it at the same time wins, or finds it final.
 * - What commits together runs after the row is changed, in the same transaction: it is rolled back with it.
 * - After a lost answer, only a row of this very change proves that it was made.
 */
export function postgresInboxChanges<Tx>({
  database,
  whole,
  clock,
  random = systemRandomBytes,
  raise: raiseLast = raiseAsOperator,
}: PostgresInboxDeps<Tx>): InboxChanges {
  async function change(consumer: string, eventId: string, wanted: DecisionWrite): Promise<boolean> {
    const { from, transition, proof, token, reason, together: { raise, work } = {} } = wanted;
    const key = [consumer, eventId];
    let xid: string | undefined;
    try {
      return await database.transaction(async (tx) => {
        const sql = database.in(tx);
        if (!from.absent) await run(sql, LOCK, key, {});
        const statement = transitionOf({ consumer, clock }, eventId, from, transition, XID);
        const [written] = await run(sql, ...statement, { xid: 'text' });
        if (written === undefined) return false;
        if (raise !== undefined && !(await raiseLast(sql, raise, reason))) throw OVERTAKEN;
        await work?.(tx);
        // From here on, only the answer to COMMIT can be lost.
        xid = written.xid;
        return true;
      });
    } catch (error) {
      if (error === OVERTAKEN || isLocked(error) || isConflict(error)) return false;
      if (xid === undefined) throw error;
      const row = `EXISTS (SELECT FROM mailroom.inbox i WHERE i.consumer = $2::text AND i.event_id = $3::text AND ${proof})`;
      const sent = { xid, proof: row, values: [consumer, eventId, token] };
      return wasCommitted({ database, clock, random }, sent, error);
    }
  }

  return {
    read: async (consumer, eventId): Promise<MessageToDecide> => {
      // Before the row: a lease that was over then is over when the row is read.
      const { now } = await readOneRow(whole, `SELECT ${epochMs('clock_timestamp()')}::text AS now`, [], {
        now: 'number',
      });
      const row = (await messageRow(whole, consumer, eventId))?.row;
      return {
        row,
        order: readable(row)?.order,
        now,
        decide: async (decision, from, together) => {
          if ((together?.writes ?? []).length > 0) throw withoutWrites(consumer);
          const { set, ...ending } = decided({ clock }, decision);
          const isNew = row === undefined;
          const done = await change(consumer, eventId, {
            // By force, too: an insert that replaces a final row is refused with an error, by the rights of an operator.
            from: isNew ? NO_ROW : { ...from, absent: false },
            transition: { ...ending, set: { ...set, type: isNew ? 'unknown' : undefined } },
            proof: 'i.fence = $4::text',
            token: decision.fence,
            reason: decision.reason,
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
        proof: 'i.run_anyway AND i.allowed_reason = $4::text',
        token: note.reason,
        reason: note.reason,
      }),
    lastSequence: (key) => readLastSequence(whole, key),
    raise: (raise, { reason }) =>
      onceMore(() => raisedAndLogged({ database, clock, random }, raise, reason)).catch((error: unknown) => {
        // A worker that applies an event holds the number, and is about to change it.
        if (isLocked(error)) return false;
        throw error;
      }),
  };
}

/** The entry in the log that this transaction has written: an operator may read it, and its token is of no other. */
const LOGGED = `SELECT o.token, ${XID} FROM mailroom.operation o
  WHERE o.at > statement_timestamp() - interval '1 hour' AND o.xmin = pg_current_xact_id()::xid`;

/**
 * Raises the last applied sequence by an operator's login. After a lost answer, only the entry in the log of this very change proves that it was made.
 *
 * @returns false if the number is not as it was read
 * @throws `COMMIT_UNKNOWN`; any other error has changed nothing
 */
async function raisedAndLogged<Tx>(
  deps: OutcomeDeps & { readonly database: Database<Tx> },
  raise: LastRaise,
  reason: string,
): Promise<boolean> {
  let sent: SentCommit | undefined;
  try {
    return await deps.database.transaction(async (tx) => {
      sent = undefined;
      const sql = deps.database.in(tx);
      if (!(await raiseAsOperator(sql, raise, reason))) return false;
      const { xid, token } = await readOneRow(sql, LOGGED, [], { xid: 'text', token: 'text' });
      const proof =
        "EXISTS (SELECT FROM mailroom.operation o WHERE o.at > statement_timestamp() - interval '1 hour' AND o.token = $2::text)";
      // From here on, only the answer to COMMIT can be lost.
      sent = { xid, proof, values: [token] };
      return true;
    });
  } catch (error) {
    if (sent !== undefined && !isConflict(error) && (await wasCommitted(deps, sent, error))) return true;
    throw error;
  }
}

/** An operator's writes of DynamoDB cannot commit with a decision in PostgreSQL. */
export function withoutWrites(consumer: string): MailroomError {
  return new MailroomError(
    'NOT_IN_DATABASE',
    `The inbox of ${consumer} is in PostgreSQL, where no writes of DynamoDB commit with a decision. Nothing was changed.`,
  );
}
