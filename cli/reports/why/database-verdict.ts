import { DATABASE_NAMES, type DatabaseEngine } from '../../../lambdas/runtime/base/database-engine.ts';
import type { StoredEventRow } from '../../../lambdas/runtime/operations/outbox-rows.ts';
import type { OutboxRow } from '../../../lambdas/runtime/store/outbox-row.ts';
import type { UnreadableRow } from '../../../lambdas/runtime/store/stored-rows.ts';
import { asClause, clipped, many } from '../../terminal/output.ts';
import { type ShellText, shell } from '../../terminal/shell.ts';
import { duration, time } from '../../terminal/times.ts';
import type { WaitingEvent } from '../events/waits.ts';
import { inTime, type StateText, type WhyContext } from './event-state.ts';
import { publishStopped } from './wiring-check.ts';

/** True for an event that a relay of a database publishes. No sweep reads it. */
export function isInDatabase(row: StoredEventRow | undefined): boolean {
  return row?.store !== undefined;
}

/** The store of an event, and the event before it in its aggregate. */
type InStore = Pick<StoredEventRow, 'store' | 'waitsFor'>;

/**
 * The verdict on a PENDING event that a relay of a database publishes.
 *
 * @param name - its type and id
 * @param wait - as every report judges it
 */
export function queuedVerdict(
  name: string,
  { eventId, because, since }: WaitingEvent,
  { leaseUntil: dueAt, lastError, attempts, waitsFor, store = 'postgres' }: OutboxRow & InStore,
  context: WhyContext,
): StateText {
  const { now, commandLine } = context;
  const inDatabase = `in ${DATABASE_NAMES[store]}`;
  const waits = `${name} has been waiting ${inDatabase} to be published for ${duration(now - since)}.`;
  const failed = lastError === undefined ? '' : ` Its last attempt failed: ${asClause(lastError)}.`;
  if (because === 'behind' && waitsFor !== undefined) {
    const text =
      `${name} has been waiting ${inDatabase} for ${duration(now - since)} behind event ${waitsFor} of its aggregate: the relay publishes an aggregate's events one after another. ` +
      'If that one is DEAD, requeue or discard it. To see its state:';
    return { state: 'publishing', text, next: commandLine(shell`why ${waitsFor}`) };
  }
  if (because === 'held') {
    const problem = `Its due_at is ${time(dueAt)}, and no relay puts it off for that long: it was changed by hand.`;
    const text = `${waits}${failed} ${problem} To make it due, as an owner of the database:`;
    const delay = { place: waits, problem, asksFirst: false, before: null };
    return { state: 'stuck', text, next: STATEMENTS[store].setDue(eventId), delay };
  }
  if (lastError !== undefined && dueAt > now) {
    const text = `${name} could not be published, ${many(attempts, 'attempt')} so far: ${asClause(lastError)}. It is retried ${inTime(dueAt, now)}. Failures of the bus do not count as attempts.`;
    return { state: 'retrying', text, next: commandLine(shell`status`) };
  }
  const stopped = publishStopped(context, ['database']);
  if (stopped !== undefined && dueAt <= now) {
    const delay = { place: waits, ...stopped.delay };
    return { state: 'stuck', text: `${waits}${failed} ${stopped.text}`, next: stopped.next, delay };
  }
  const held = dueAt > now ? `A relay holds it until ${time(dueAt)}` : 'A relay of the database publishes it';
  const text = `${waits}${failed} ${held}; if it still waits after five minutes, \`status\` names the cause.`;
  return { state: 'publishing', text, next: null };
}

/** The verdict on an event in a database that has none of the states that an event can have: its row in the queue was deleted by hand. */
export function unqueuedVerdict(
  name: string,
  eventId: string,
  { unreadable, store = 'postgres' }: Pick<UnreadableRow, 'unreadable'> & InStore,
): StateText {
  const text =
    `The row of ${name} in ${DATABASE_NAMES[store]} cannot be read: ${clipped(unreadable)}. An event whose status is "LOST" is neither queued nor published, dead, discarded or cancelled: ` +
    'its row of mailroom.pending was deleted by hand, or no relay is used here. To queue it again, as an owner of the database:';
  return { state: 'unreadable', text, next: STATEMENTS[store].requeue(eventId) };
}

/** The commands that put a row of the queue right, as an owner of the database. */
const STATEMENTS: Readonly<
  Record<DatabaseEngine, Readonly<Record<'setDue' | 'requeue', (eventId: string) => ShellText>>>
> = {
  postgres: {
    setDue: (id) =>
      shell`psql -c ${`UPDATE mailroom.pending SET due_at = clock_timestamp() WHERE event_id = '${id}'`}`,
    requeue: (id) =>
      shell`psql -c ${`INSERT INTO mailroom.pending (event_id) VALUES ('${id}') ON CONFLICT DO NOTHING`}`,
  },
  mysql: {
    setDue: (id) =>
      shell`mysql -e ${`UPDATE mailroom.pending SET due_at = UTC_TIMESTAMP(6) WHERE event_id = ${binary(id)}`}`,
    requeue: (id) =>
      shell`mysql -e ${`INSERT IGNORE INTO mailroom.pending (event_id, due_at) VALUES (${binary(id)}, UTC_TIMESTAMP(6))`}`,
  },
};

function binary(eventId: string): string {
  return `UNHEX('${eventId.replaceAll('-', '')}')`;
}
