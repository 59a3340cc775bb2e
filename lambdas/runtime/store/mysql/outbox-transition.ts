import type { EventTransition } from '../../outbox/outbox-transitions.ts';
import type { OutboxStatus } from '../outbox-row.ts';
import type { Sql } from '../sql/database.ts';
import { readRows } from '../sql/sql-rows.ts';
import { PLACE, PLACE_COLUMNS, wakeNext } from './aggregate-order.ts';
import { byIds, FROM_NOW, ID, idParameter, KEY, NOW, TEXT, TIME, textParameter } from './expressions.ts';

type TransitionColumns = Readonly<
  Partial<Record<keyof EventTransition['set'], readonly [column: string, value: string]>>
>;

const FAILURE: TransitionColumns = { attempts: ['attempts', '?'], lastError: ['last_error', TEXT] };

/** The columns of each state's table, with their new values. The tables have the names of the states. */
const COLUMNS: Readonly<Record<OutboxStatus, TransitionColumns>> = {
  PENDING: { leaseUntil: ['due_at', FROM_NOW], ...FAILURE },
  PUBLISHED: { publishedAt: ['published_at', NOW] },
  DEAD: { deadAt: ['dead_at', NOW], ...FAILURE, fingerprint: ['fingerprint', TEXT] },
  CANCELLED: { cancelledAt: ['cancelled_at', NOW] },
  DISCARDED: {
    discardedAt: ['discarded_at', NOW],
    discardedBy: ['operator', TEXT],
    discardedReason: ['reason', TEXT],
  },
};

/**
 * An event that its claim holds; or one of its producer that no relay has ever held: the id of a scheduled event contains its due time,
 * and a claim moves `due_at` past it permanently. Names of services are compared as bytes.
 */
const ONLY = {
  held: `WHERE p.event_id = ${ID} AND p.fence = ${ID}`,
  unclaimed: `JOIN mailroom.event e USING (event_id)
WHERE p.event_id = ${ID} AND p.due_at = ${TIME} AND p.fence IS NULL AND CAST(e.source AS BINARY) = ${KEY}`,
} as const;

/**
 * Makes a transition of one event that is PENDING or DEAD, in an open transaction: the row is locked by its condition first, so that all that follows is
 * about the row as it is, and not as a snapshot has it.
 *
 * @param now - the time at which it was decided: a second reading of a clock that was set meanwhile would move the event's due time
 * @param of - the event's id, and the parameters of its claim; or of its due time and its owner, if it is unclaimed; nothing more if it is DEAD
 * @returns true if the event was changed
 */
export async function makeTransition(
  sql: Sql,
  now: number,
  [eventId, ...of]: readonly [eventId: string, ...of: readonly unknown[]],
  { from, only = 'held', set, isHeld }: EventTransition,
): Promise<boolean> {
  const id = idParameter(eventId);
  const table = from[0].toLowerCase();
  const where = from[0] === 'DEAD' ? `WHERE p.event_id = ${ID}` : ONLY[only];
  const lock = `SELECT ${PLACE} FROM mailroom.${table} p ${where} FOR UPDATE`;
  const [place] = await readRows(sql, lock, [id, ...of], PLACE_COLUMNS);
  if (place === undefined) return false;
  const values: unknown[] = [];
  const given = Object.entries(set).flatMap(([name, value]) => {
    const [column, expression] = COLUMNS[set.status ?? 'PENDING'][name as keyof TransitionColumns] ?? [];
    if (column === undefined || expression === undefined) return [];
    if (expression === FROM_NOW) values.push(Number(value) - now);
    else if (expression === TEXT) values.push(textParameter(String(value)));
    else if (expression === '?') values.push(value);
    return [[column, expression] as const];
  });
  if (set.status === undefined) {
    const changes = given.map(([column, expression]) => `${column} = ${expression}`);
    if (isHeld !== true) changes.push('fence = NULL');
    await sql.query(`UPDATE mailroom.pending SET ${changes.join(', ')} WHERE event_id = ${ID}`, [
      ...values,
      id,
    ]);
    return true;
  }
  // Its place goes with an event that is still to be published.
  if (place.aggregate_key !== undefined && (set.status === 'DEAD' || set.status === 'PENDING')) {
    given.push(['ordinal', '?'], ['aggregate_key', ID]);
    values.push(place.ordinal, place.aggregate_key);
  }
  await insertInto(sql, set.status, [id], given, values);
  await sql.query(`DELETE FROM mailroom.${table} WHERE event_id = ${ID}`, [id]);
  if (set.status === 'DISCARDED') await wakeNext(sql, [place]);
  return true;
}

/** Moves events whose rows are locked into `published`. @param ids - parameters; at least one */
export async function moveToPublished(
  sql: Sql,
  from: 'pending' | 'dead',
  ids: readonly string[],
): Promise<void> {
  await insertInto(sql, 'PUBLISHED', ids, Object.values(COLUMNS.PUBLISHED), []);
  await sql.query(`DELETE mailroom.${from} FROM ${byIds(from, ids.length)}`, ids);
}

/** An event that is in the table already has been there before it was queued again. */
async function insertInto(
  sql: Sql,
  status: OutboxStatus,
  ids: readonly string[],
  given: readonly (readonly [column: string, expression: string])[],
  values: readonly unknown[],
): Promise<void> {
  const columns = given.map(([column]) => column);
  const row = `(${[ID, ...given.map(([, expression]) => expression)].join(', ')})`;
  const again = columns.map((column) => `${column} = VALUES(${column})`).join(', ');
  await sql.query(
    `INSERT INTO mailroom.${status.toLowerCase()} (event_id, ${columns.join(', ')}) VALUES ${ids.map(() => row).join(', ')}
ON DUPLICATE KEY UPDATE ${again}`,
    ids.flatMap((id) => [id, ...values]),
  );
}
