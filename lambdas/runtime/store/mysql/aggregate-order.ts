import { createHash } from 'node:crypto';
import { PARKED_MS } from '../../outbox/outbox-transitions.ts';
import type { Sql } from '../sql/database.ts';
import { type RowOf, readRows } from '../sql/sql-rows.ts';
import { byIds, ID, idText, NOW, numberText } from './expressions.ts';

/**
 * The order in which events were written: each gets the next number of its table when it is inserted into the queue, and takes it along when it becomes DEAD. A
 * number says nothing about the time of a commit, so no reader may follow it; within an aggregate, it is the order of transactions that lock the aggregate before
 * they write. Scheduled events, and those that an operator publishes again, have no aggregate.
 */
export const AGGREGATE_ORDER: readonly string[] = [
  `ALTER TABLE mailroom.pending ADD COLUMN ordinal BIGINT NOT NULL AUTO_INCREMENT, ADD COLUMN aggregate_key BINARY(16), ADD COLUMN waits_for BINARY(16),
  ADD KEY pending_ordinal (ordinal), ADD KEY pending_in_aggregate (aggregate_key, ordinal)`,
  `ALTER TABLE mailroom.dead ADD COLUMN ordinal BIGINT, ADD COLUMN aggregate_key BINARY(16), ADD KEY dead_in_aggregate (aggregate_key, ordinal)`,
];

/** Identifies an aggregate in an index, whatever the length of its names, as the parameter {@link ID}. */
export function aggregateKey(source: string, type: string, id: string): string {
  return createHash('sha256')
    .update(JSON.stringify([source, type, id]))
    .digest('hex')
    .slice(0, 32);
}

/** The columns of an event's place, in `pending` or `dead`. */
export const PLACE = `${numberText('ordinal')} AS ordinal, ${idText('aggregate_key')} AS aggregate_key`;

/** The form in which they are read. */
export const PLACE_COLUMNS = { ordinal: 'number?', aggregate_key: 'text?' } as const;

/** The place of an event in its aggregate. Without a key it has none. */
export type EventPlace = RowOf<typeof PLACE_COLUMNS>;

/** An event of the queue, with its place. The id is a parameter {@link ID}. */
export interface PlacedEvent extends EventPlace {
  readonly event_id: string;
}

/**
 * The id of the event next to another one, in a table. Its bounds are parameters: if they were columns, the server would read all events of the aggregate.
 */
function neighbor(table: 'pending' | 'dead', where: string, order: string): string {
  return `(SELECT b.event_id FROM mailroom.${table} b FORCE INDEX (${table}_in_aggregate)
    WHERE b.aggregate_key = ${ID} AND b.ordinal ${where} CAST(? AS SIGNED) ORDER BY b.ordinal ${order} LIMIT 1)`;
}

const BEFORE = `COALESCE(${neighbor('pending', '<', 'DESC')}, ${neighbor('dead', '<', 'DESC')})`;

/** One statement sees both tables as of one moment: an event that becomes DEAD, or is requeued, is in one of them. It waits for no lock. */
const WAITING = (count: number) =>
  `SELECT event_id, waits_for FROM (${union(count, `? AS event_id, ${idText(BEFORE)} AS waits_for`)}) placed WHERE waits_for IS NOT NULL`;

/** Rows with their events before. */
const PARK = (
  count: number,
) => `UPDATE (${union(count, `${ID} AS id, ${ID} AS before_it`)}) w STRAIGHT_JOIN mailroom.pending FORCE INDEX (PRIMARY) ON event_id = w.id
SET due_at = ${NOW} + INTERVAL ${PARKED_MS * 1_000} MICROSECOND, fence = NULL, waits_for = w.before_it`;

/**
 * Puts off the events that wait for one before them in their aggregate, which is in the queue, claimed or not, or DEAD.
 *
 * *Invariant: an event is claimed only if no event before it that is visible then is in the queue or DEAD.* The rows must be locked first: the mark of an
 * event locks the next one, to make it due. So this sees either that the event before is gone, or the mark waits, and makes the event due after this.
 *
 * @param events - locked events of the queue
 * @returns the ids of those that do not wait, in their order
 */
export async function parkWaiting(sql: Sql, events: readonly PlacedEvent[]): Promise<string[]> {
  const placed = events.filter(({ aggregate_key }) => aggregate_key !== undefined);
  const parked = placed.length === 0 ? new Set() : await park(sql, placed);
  return events.map(({ event_id }) => event_id).filter((id) => !parked.has(id));
}

async function park(sql: Sql, placed: readonly PlacedEvent[]): Promise<ReadonlySet<string>> {
  const bounds = placed.flatMap(({ event_id, aggregate_key, ordinal }) => [
    event_id,
    ...[aggregate_key, ordinal, aggregate_key, ordinal],
  ]);
  const waiting = await readRows(sql, WAITING(placed.length), bounds, {
    event_id: 'text',
    waits_for: 'text',
  });
  if (waiting.length > 0)
    await sql.query(
      PARK(waiting.length),
      waiting.flatMap(({ event_id, waits_for }) => [event_id, waits_for]),
    );
  return new Set(waiting.map(({ event_id }) => event_id));
}

/** The events of the queue that follow some places. */
const FOLLOWING = (count: number) => union(count, `${idText(neighbor('pending', '>', ''))} AS event_id`);

/** An event that a relay holds, or that waits for another try, is not put off. */
const WAKE = (count: number) =>
  `UPDATE ${byIds('pending', count)} SET due_at = ${NOW}, waits_for = NULL WHERE waits_for IS NOT NULL`;

/**
 * Makes the events due that follow others in their aggregates, in the transaction that publishes or discards those. It waits for the claims that are about to put one
 * off.
 */
export async function wakeNext(sql: Sql, places: readonly EventPlace[]): Promise<void> {
  const of = places.filter(({ aggregate_key }) => aggregate_key !== undefined);
  if (of.length === 0) return;
  const values = of.flatMap(({ aggregate_key, ordinal }) => [aggregate_key, ordinal]);
  const following = await readRows(sql, FOLLOWING(of.length), values, { event_id: 'text?' });
  // In their order, in which rows are locked.
  const ids = [...new Set(following.flatMap(({ event_id }) => event_id ?? []))].toSorted();
  if (ids.length > 0) await sql.query(WAKE(ids.length), ids);
}

function union(count: number, columns: string): string {
  return Array.from({ length: count }, () => `SELECT ${columns}`).join(' UNION ALL ');
}
