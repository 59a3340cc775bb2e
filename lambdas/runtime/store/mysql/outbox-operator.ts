import { isMailroomError } from '../../base/errors.ts';
import { discarded, requeued } from '../../outbox/outbox-transitions.ts';
import { backoffMs } from '../backoff.ts';
import type { Sql } from '../sql/database.ts';
import { readRows } from '../sql/sql-rows.ts';
import { ID, idOf, idParameter, idText, NOW, TIME } from './expressions.ts';
import { isConnectionLost, isRetryable } from './mysql-error.ts';
import { accountOf, asOperator, type OperatorDeps, type OperatorTransaction } from './operation-log.ts';
import { makeTransition } from './outbox-transition.ts';

/** An operator's change of events. */
export type OutboxChange = 'requeue' | 'discard' | 'republish' | 'mark_resent';

/** The most tries of a change that met other transactions, or whose connection was lost before its COMMIT. */
const TRIES = 5;

/** The events that one transaction changes. */
const AT_ONCE = 100;

const DEAD = `SELECT ${idText('event_id')} AS event_id FROM mailroom.dead ORDER BY event_id`;

/**
 * Locks the row of a published event, and then that of the event: in the order in which the relay deletes them. An event is published again only if it was
 * not sent since the operator has read when that was: of two operators, or two tries, one queues it.
 */
const LOCK_SENT = {
  republish: `SELECT ${idText('p.event_id')} AS event_id FROM mailroom.published p STRAIGHT_JOIN mailroom.event e ON e.event_id = p.event_id
    WHERE p.event_id = ${ID} AND COALESCE(p.resent_at, p.published_at) <= ${TIME}
      AND NOT EXISTS (SELECT 1 FROM mailroom.dead d WHERE d.event_id = p.event_id)
      AND NOT EXISTS (SELECT 1 FROM mailroom.discarded x WHERE x.event_id = p.event_id) FOR UPDATE`,
  mark_resent: `SELECT ${idText('p.event_id')} AS event_id FROM mailroom.published p WHERE p.event_id = ${ID} FOR UPDATE`,
} as const;

/** The row of an event that was published says when it was sent again: the audit allows for its delivery. */
const RESENT = `UPDATE mailroom.published SET resent_at = ${NOW} WHERE event_id = ${ID}`;

const QUEUE = `INSERT INTO mailroom.pending (event_id, due_at) VALUES (${ID}, ${NOW}) ON DUPLICATE KEY UPDATE fence = fence`;

/**
 * Changes events, as the transitions of the outbox decide: each is locked first, and changed as it is then.
 *
 * @param eventIds - `null` for all DEAD events
 * @param sentUntil - of a republish: the time at which it was sent last, as the operator has read it, epoch milliseconds
 * @returns the ids of those that were changed
 * @throws `COMMIT_UNKNOWN`
 */
export async function changeEvents<Tx>(
  deps: OperatorDeps<Tx>,
  change: OutboxChange,
  eventIds: readonly string[] | null,
  reason: string,
  sentUntil = 0,
): Promise<readonly string[]> {
  const ids =
    eventIds ??
    (await readRows(deps.database, DEAD, [], { event_id: 'text' })).map(({ event_id }) => idOf(event_id));
  const sorted = [...new Set(ids)].toSorted();
  const changed: string[] = [];
  for (let from = 0; from < sorted.length; from += AT_ONCE) {
    const part = sorted.slice(from, from + AT_ONCE);
    changed.push(
      ...(await tried(deps, async ({ sql, log }) => {
        const done: string[] = [];
        for (const eventId of part) {
          if (!(await changeOne(deps, sql, change, eventId, reason, sentUntil))) continue;
          await log({ command: change, subject: eventId, reason });
          done.push(eventId);
        }
        return done;
      })),
    );
  }
  return changed;
}

async function changeOne<Tx>(
  { clock }: OperatorDeps<Tx>,
  sql: Sql,
  change: OutboxChange,
  eventId: string,
  reason: string,
  sentUntil: number,
): Promise<boolean> {
  const now = clock.now();
  const id = idParameter(eventId);
  if (change === 'requeue') return makeTransition(sql, now, [eventId], requeued(eventId, now));
  if (change === 'discard')
    return makeTransition(sql, now, [eventId], discarded(now, { by: await accountOf(sql), reason }));
  const values = change === 'republish' ? [id, sentUntil] : [id];
  if ((await readRows(sql, LOCK_SENT[change], values, {})).length === 0) return false;
  await sql.query(RESENT, [id]);
  if (change === 'republish') await sql.query(QUEUE, [id]);
  return true;
}

/** Repeats a transaction that was rolled back, or whose connection was lost before its COMMIT. */
async function tried<Tx, T>(
  deps: OperatorDeps<Tx>,
  run: (transaction: OperatorTransaction<Tx>) => Promise<T>,
): Promise<T> {
  const { clock, random } = deps;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await asOperator(deps, run);
    } catch (error) {
      // Its cause is a lost connection, too: to repeat what may have been committed would report that nothing was changed.
      const isUnknown = isMailroomError(error, 'COMMIT_UNKNOWN');
      if (attempt >= TRIES || isUnknown || !(isRetryable(error) || isConnectionLost(error))) throw error;
      await clock.sleep(backoffMs(attempt, 100, 2_000, random));
    }
  }
}
