import type { EventTransition } from '../../outbox/outbox-transitions.ts';
import type { OutboxStatus } from '../outbox-row.ts';

/** A time of the relay's clock, as one of the database's clock. */
const FROM_NOW = "clock_timestamp() + ?::double precision * interval '1 ms'";

type StoredColumns = Readonly<
  Partial<Record<keyof EventTransition['set'], readonly [column: string, value: string]>>
>;

const FAILURE: StoredColumns = { attempts: ['attempts', '?::int'], lastError: ['last_error', '?::text'] };

/** The columns of each state's table, with their new values from the parameter `?`. The tables have the names of the states. */
const COLUMNS: Readonly<Record<OutboxStatus, StoredColumns>> = {
  PENDING: { leaseUntil: ['due_at', FROM_NOW], ...FAILURE },
  PUBLISHED: { publishedAt: ['published_at', 'clock_timestamp()'] },
  DEAD: { deadAt: ['dead_at', 'clock_timestamp()'], ...FAILURE, fingerprint: ['fingerprint', '?::text'] },
  CANCELLED: { cancelledAt: ['cancelled_at', 'clock_timestamp()'] },
  // Only an operator discards, by a function of the schema.
  DISCARDED: {},
};

/**
 * An event that its claim holds; or one of its producer that no relay has ever held: the id of a scheduled event contains its due time,
 * and a claim moves `due_at` past it permanently.
 */
const ONLY = {
  held: 'p.event_id = $1::uuid AND p.fence = $2::uuid',
  unclaimed: `p.event_id = $1::uuid AND p.due_at = to_timestamp($2::double precision / 1000::float8) AND p.fence IS NULL
    AND EXISTS (SELECT FROM mailroom.event e WHERE e.event_id = p.event_id AND e.source = $3::text)`,
} as const;

/**
 * The statement that makes a transition of one event in the queue, and its parameters. It returns a row if it changed one.
 *
 * @param now - the time at which it was decided: a second reading of a clock that was set meanwhile would move the event's due time
 * @param of - the event's id, and its claim; or its due time and its owner, if it is unclaimed
 */
export function transitionOf(
  now: number,
  of: readonly unknown[],
  { only = 'held', set, isHeld }: EventTransition,
): [text: string, values: unknown[]] {
  const values = [...of];
  const given = Object.entries(set).flatMap(([name, value]) => {
    const [column, sql] = COLUMNS[set.status ?? 'PENDING'][name as keyof StoredColumns] ?? [];
    if (column === undefined || sql === undefined) return [];
    const stored = sql === FROM_NOW ? Number(value) - now : storable(value);
    return [[column, sql.replace('?', () => `$${values.push(stored)}`)] as const];
  });
  if (set.status !== undefined) {
    const gone = `DELETE FROM mailroom.pending p WHERE ${ONLY[only]} RETURNING p.event_id`;
    return [`WITH gone AS (${gone})\n${insertInto(set.status, given, 'gone')}`, values];
  }
  const changes = given.map(([column, sql]) => `${column} = ${sql}`);
  if (isHeld !== true) changes.push('fence = NULL');
  const text = `UPDATE mailroom.pending p SET ${changes.join(', ')} WHERE ${ONLY[only]} RETURNING p.event_id`;
  return [text, values];
}

/** Inserts a group of published events into their table. @param from - the query that returned their ids */
export function insertPublished(from: string): string {
  return insertInto('PUBLISHED', Object.values(COLUMNS.PUBLISHED), from);
}

/** Inserts events into the table of a state. @param from - the query that returned their ids */
function insertInto(
  status: OutboxStatus,
  given: readonly (readonly [column: string, sql: string])[],
  from: string,
): string {
  const columns = ['event_id', ...given.map(([column]) => column)].join(', ');
  const values = ['event_id', ...given.map(([, sql]) => sql)].join(', ');
  // The owner of the schema may have queued an event that is DEAD.
  const unless = status === 'DEAD' ? ' ON CONFLICT DO NOTHING' : '';
  return `INSERT INTO mailroom.${status.toLowerCase()} (${columns}) SELECT ${values} FROM ${from}${unless} RETURNING event_id::text AS event_id`;
}

/** PostgreSQL stores no NUL. */
export function storable<T>(value: T): T | string {
  return typeof value === 'string' ? value.replaceAll('\u0000', '') : value;
}
