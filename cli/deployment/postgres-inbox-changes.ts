import type { Clock } from '../../lambdas/runtime/base/clock.ts';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { NO_ROW, REJECTED_AS_TOO_OLD } from '../../lambdas/runtime/inbox/inbox-conditions.ts';
import {
  allowedToRun,
  decided,
  type InboxChanges,
  type MessageToDecide,
} from '../../lambdas/runtime/inbox/inbox-operator.ts';
import type { RowsBefore, RowTransition } from '../../lambdas/runtime/inbox/row-transition.ts';
import type { InboxRows } from '../../lambdas/runtime/operations/inbox-rows.ts';
import { systemRandomBytes } from '../../lambdas/runtime/store/event-id.ts';
import { wasCommitted } from '../../lambdas/runtime/store/postgres/commit-outcome.ts';
import { epochMs, isConflict, isLocked, run } from '../../lambdas/runtime/store/postgres/inbox-row.ts';
import { transitionOf } from '../../lambdas/runtime/store/postgres/inbox-writes.ts';
import { readOneRow } from '../../lambdas/runtime/store/postgres/sql-rows.ts';
import type { OpenPostgres } from './postgres-database.ts';

/** Dependencies of {@link postgresInboxChanges}. */
interface PostgresInboxDeps {
  readonly postgres: Pick<OpenPostgres, 'database' | 'whole'>;
  /** The rows of the database. */
  readonly inbox: Pick<InboxRows, 'byEvent'>;
  readonly clock: Clock;
}

/** Until the transaction ends, no worker claims, renews, commits or takes over the message, or starts an effect of it. */
const LOCK =
  'SELECT 1 FROM mailroom.inbox WHERE consumer = $1::text AND event_id = $2::text FOR NO KEY UPDATE';

const XID = 'pg_current_xact_id()::text AS xid';

/**
 * The changes of the inboxes in PostgreSQL: the rules of those in DynamoDB, by the database's clock, which has written the leases.
 *
 * *Invariant: a decision without force changes the row only as it was read: its status, its fence, its lease, and its effects.*
 *
 * - A statement before it locks the row. The decision's own statement then sees every effect that was started before, and none starts until the end.
 *   An effect that ends meanwhile is still there, in another state: the decision is refused, or it ended after the decision.
 * - A transaction that holds the row longer than `lock_timeout`, such as a commit, wins: the message is read again.
 * - A message without a row gets one only if it still has none. A worker that inserts it at the same time wins, or finds it final.
 * - After a lost answer, only a row of this very change proves that it was made.
 */
export function postgresInboxChanges({ postgres, inbox, clock }: PostgresInboxDeps): InboxChanges {
  const { database, whole } = postgres;

  /** @param proof - a condition of `i`, with its value in `$4`, that only this change fulfills */
  async function change(
    key: readonly [consumer: string, eventId: string],
    from: RowsBefore,
    transition: RowTransition,
    proof: string,
    token: string,
  ): Promise<boolean> {
    const [consumer, eventId] = key;
    let xid: string | undefined;
    try {
      return await database.transaction(async (tx) => {
        const sql = database.in(tx);
        if (!from.absent) await run(sql, LOCK, key, {});
        const statement = transitionOf({ consumer, clock }, eventId, from, transition, XID);
        const [written] = await run(sql, ...statement, { xid: 'text' });
        xid = written?.xid;
        return written !== undefined;
      });
    } catch (error) {
      if (isLocked(error) || isConflict(error)) return false;
      if (xid === undefined) throw error;
      const row = `EXISTS (SELECT FROM mailroom.inbox i WHERE i.consumer = $2::text AND i.event_id = $3::text AND ${proof})`;
      const sent = { xid, proof: row, values: [consumer, eventId, token] };
      return wasCommitted({ database, clock, random: systemRandomBytes }, sent, error);
    }
  }

  return {
    read: async (consumer, eventId): Promise<MessageToDecide> => {
      // Before the row: a lease that was over then is over when the row is read.
      const { now } = await readOneRow(whole, `SELECT ${epochMs('clock_timestamp()')}::text AS now`, [], {
        now: 'number',
      });
      const row = await inbox.byEvent(consumer, eventId, true);
      return {
        row,
        now,
        decide: async (decision, from, { writes = [], raise = [] } = {}) => {
          if (writes.length + raise.length > 0) throw withoutWrites(consumer);
          const { set, ...ending } = decided({ clock }, decision);
          const isNew = row === undefined;
          const done = await change(
            [consumer, eventId],
            // By force, too: an insert that replaces a final row is refused with an error, by the rights of an operator.
            isNew ? NO_ROW : { ...from, absent: false },
            { ...ending, set: { ...set, type: isNew ? 'unknown' : undefined } },
            'i.fence = $4::text',
            decision.fence,
          );
          return done ? 'done' : 'changed';
        },
      };
    },
    allow: (consumer, { eventId, ...note }) =>
      change(
        [consumer, eventId],
        REJECTED_AS_TOO_OLD,
        allowedToRun({ clock }, { eventId, ...note }),
        'i.run_anyway AND i.allowed_reason = $4::text',
        note.reason,
      ),
  };
}

function withoutWrites(consumer: string): MailroomError {
  return new MailroomError(
    'NOT_IN_POSTGRES',
    `The inbox of ${consumer} is in PostgreSQL, where no writes of DynamoDB commit with a decision. Nothing was changed.`,
  );
}
