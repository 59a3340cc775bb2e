import { LAST_PREFIX, sequenceOf } from '../keys.ts';
import { type LastRaise, type LastSequence, NOTHING_APPLIED } from '../last-sequence.ts';
import type { Sql } from '../sql/database.ts';
import { encoded, epochMs, KEY, NOW, numberText, textParameter } from './expressions.ts';
import { run } from './inbox-row.ts';
import { joined, part, type StatementPart } from './statement.ts';

const READ = `SELECT ${numberText('last')} AS last, ${encoded('event_id')} AS event_id, ${epochMs('at')} AS at FROM mailroom.last_sequence WHERE `;

/** Reads the last applied sequence of an aggregate. Outside a transaction, the read sees every committed write. */
export async function readLastSequence(sql: Sql, key: string): Promise<LastSequence> {
  const columns = { last: 'number', event_id: 'base64?', at: 'number' } as const;
  const [row] = await run(sql, joined([READ, rowOf(key)]), columns);
  if (row === undefined) return NOTHING_APPLIED;
  return { last: row.last, exists: true, eventId: row.event_id, at: row.at };
}

/**
 * Holds the last applied sequence until the transaction ends, so that it stays as the handler's reads have it. A sequence that has not begun gets a row
 * with 0: of two transactions that begin it, the second waits for the first, and judges the number that one has left.
 *
 * The number is raised by {@link writeLast} only after the handler: one that ends the transaction by mistake would commit a number without its message.
 *
 * @returns false if the number is not as it was read
 */
export async function holdLast(sql: Sql, { key, seen }: LastRaise): Promise<boolean> {
  if (!seen.exists) await run(sql, begun(key), {});
  const held = await run(
    sql,
    joined([
      'SELECT 1 FROM mailroom.last_sequence WHERE ',
      rowOf(key),
      part(' AND last = ? FOR UPDATE', seen.last),
    ]),
    {},
  );
  return held.length > 0;
}

/** Raises the last applied sequence that {@link holdLast} holds. */
export async function writeLast(sql: Sql, { key, sequence, eventId = undefined }: LastRaise): Promise<void> {
  const set = part(
    `UPDATE mailroom.last_sequence SET last = ?, event_id = ${KEY}, at = ${NOW} WHERE `,
    sequence,
    textParameter(eventId),
  );
  await run(sql, joined([set, rowOf(key)]), {});
}

/** Raises the last applied sequence, in a transaction. @returns false if the number is not as it was read */
export async function raiseLast(sql: Sql, raise: LastRaise): Promise<boolean> {
  if (!(await holdLast(sql, raise))) return false;
  await writeLast(sql, raise);
  return true;
}

function begun(key: string): StatementPart {
  return part(
    `INSERT INTO mailroom.last_sequence (consumer, place, last, at) VALUES (${KEY}, ${KEY}, 0, ${NOW}) ON DUPLICATE KEY UPDATE last = last`,
    ...columnsOf(key),
  );
}

/** The condition for one row. */
function rowOf(key: string): StatementPart {
  return part(`consumer = ${KEY} AND place = ${KEY}`, ...columnsOf(key));
}

function columnsOf(key: string): [consumer: string | null, place: string | null] {
  const { consumer } = sequenceOf(key);
  return [textParameter(consumer), textParameter(key.slice(LAST_PREFIX.length + consumer.length + 1))];
}
