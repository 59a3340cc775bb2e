import { LAST_PREFIX, sequenceOf } from '../keys.ts';
import { type LastRaise, type LastSequence, NOTHING_APPLIED } from '../last-sequence.ts';
import { epochMs, run } from './inbox-row.ts';
import type { Sql } from './sql.ts';

const READ = `SELECT last::text AS last, event_id, ${epochMs('at')}::text AS at FROM mailroom.last_sequence
  WHERE consumer = $1::text AND place = $2::text`;

/** Of two transactions that begin a sequence, the second waits for the first, and changes nothing if that commits. */
const BEGIN = `INSERT INTO mailroom.last_sequence (consumer, place, last, event_id) VALUES ($1::text, $2::text, $3::bigint, $4::text)
  ON CONFLICT (consumer, place) DO NOTHING RETURNING 1`;

/** It waits for a transaction that has raised the number, and then judges the number that one has left. */
const RAISE = `UPDATE mailroom.last_sequence SET last = $3::bigint, event_id = $4::text, at = clock_timestamp()
  WHERE consumer = $1::text AND place = $2::text AND last = $5::bigint RETURNING 1`;

/** Reads the last applied sequence of an aggregate. The read sees every committed write. */
export async function readLastSequence(sql: Sql, key: string): Promise<LastSequence> {
  const { consumer, place } = placeOfKey(key);
  const columns = { last: 'number', event_id: 'text?', at: 'number' } as const;
  const [row] = await run(sql, READ, [consumer, place], columns);
  return row === undefined
    ? NOTHING_APPLIED
    : { last: row.last, exists: true, eventId: row.event_id, at: row.at };
}

/**
 * Raises the last applied sequence, in the transaction that ends its message. It holds the row until the transaction ends, so the number stays as
 * the handler's reads have it.
 *
 * @returns false if the number is not as it was read
 */
export async function raiseLast(
  sql: Sql,
  { key, sequence, seen, eventId = undefined }: LastRaise,
): Promise<boolean> {
  const { consumer, place } = placeOfKey(key);
  const values = [consumer, place, sequence, eventId ?? null];
  const raised = seen.exists
    ? await run(sql, RAISE, [...values, seen.last], {})
    : await run(sql, BEGIN, values, {});
  return raised.length > 0;
}

const RAISE_AS_OPERATOR = `SELECT mailroom.raise_last($1::text, $2::text, $3::bigint, $4::bigint, $5::text)::text AS raised`;

/** As {@link raiseLast}, by an operator's login: the log of operations gets an entry. */
export async function raiseAsOperator(
  sql: Sql,
  { key, sequence, seen }: LastRaise,
  reason: string,
): Promise<boolean> {
  const { consumer, place } = placeOfKey(key);
  const values = [consumer, place, seen.exists ? seen.last : null, sequence, reason];
  const [row] = await run(sql, RAISE_AS_OPERATOR, values, { raised: 'boolean' });
  return row?.raised === true;
}

/** The columns of a key. PostgreSQL stores no NUL, and two aggregates must not share a number because of one. */
function placeOfKey(key: string): { readonly consumer: string; readonly place: string } {
  const { consumer } = sequenceOf(key);
  const place = key.slice(LAST_PREFIX.length + consumer.length + 1);
  return { consumer, place: place.replaceAll('\\', '\\\\').replaceAll('\0', '\\0') };
}
