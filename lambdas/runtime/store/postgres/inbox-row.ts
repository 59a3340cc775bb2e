import { isMailroomError } from '../../base/errors.ts';
import type { InboxRules } from '../../inbox/inbox.ts';
import type { InboxRow } from '../inbox-row.ts';
import { SCHEMA } from '../row-schema.ts';
import type { DatabaseEvents } from '../sql/database-outbox.ts';
import { type Database, isRetryable, type Sql, sqlState } from './sql.ts';
import { type Columns, type RowOf, readRows } from './sql-rows.ts';

/** The inbox of one consumer in PostgreSQL. */
export interface PostgresInboxContext<Tx> {
  readonly rules: InboxRules;
  readonly database: Database<Tx>;
  readonly outbox: DatabaseEvents<Tx>;
}

/** The maximum number of tries of a statement that met another transaction. */
const CONFLICT_TRIES = 4;

/** A row, as the text of a JSON object. Its times are milliseconds from now on the database's clock, so that no other clock judges them. */
const ROW = `pg_catalog.json_strip_nulls(pg_catalog.json_build_object(
  'status', i.status, 'type', i.type, 'fence', i.fence, 'attempts', i.attempts, 'unfinished', i.unfinished,
  'outOfTime', i.out_of_time, 'lastError', i.last_error, 'fingerprint', i.fingerprint, 'reason', i.reason, 'result', i.result,
  'place', i.place, 'supersededBy', i.superseded_by, 'commitId', i.commit_id, 'pastAttempts', i.past_attempts, 'rejectedIds', i.rejected_ids, 'runAnyway', i.run_anyway, 'claimedAt', ${fromNow('i.claimed_at')},
  'leaseUntil', ${fromNow('i.lease_until')}, 'endsBy', ${fromNow('i.ends_by')}, 'retryAt', ${fromNow('i.retry_at')},
  'effects', (SELECT pg_catalog.json_object_agg(e.name, pg_catalog.json_build_object('status', e.status, 'fence', e.fence, 'run', e.run,
      'endsBy', ${fromNow('e.ends_by')}, 'startedAt', ${fromNow('e.started_at')}, 'result', e.result, 'error', e.error,
      'nothingHappened', e.nothing_happened,
      CASE e.status WHEN 'COMPLETED' THEN 'completedAt' ELSE 'endedAt' END, ${fromNow('e.ended_at')}))
    FROM mailroom.effect e WHERE e.consumer = i.consumer AND e.event_id = i.event_id)))::text`;

function fromNow(column: string): string {
  return `round(extract(epoch FROM ${column} - clock_timestamp())::float8 * 1000::float8)`;
}

/** A time of the database, as epoch milliseconds. */
export function epochMs(time: string): string {
  return `round(extract(epoch FROM ${time})::float8 * 1000::float8)`;
}

/** A time of the database, some milliseconds from now. @param ms - an expression */
export function inMs(ms: string): string {
  return `clock_timestamp() + ${ms} * interval '1 ms'`;
}

/** Reads a message's row and its effects, with times of the rules' clock. */
export async function readRow(
  { rules: { clock, consumer } }: Pick<PostgresInboxContext<never>, 'rules'>,
  sql: Sql,
  eventId: string,
): Promise<InboxRow | undefined> {
  const [found] = await run(
    sql,
    `SELECT ${ROW} AS row FROM mailroom.inbox i WHERE i.consumer = $1::text AND i.event_id = $2::text`,
    [consumer, eventId],
    { row: 'text' },
  );
  if (found === undefined) return undefined;
  // Now is after the answer, so a lease appears to end later than it does, never earlier.
  const now = clock.now();
  const { rejectedIds, pastAttempts, place, effects, ...row } = atTime(JSON.parse(found.row), now);
  return {
    PK: consumer,
    SK: eventId,
    schema: SCHEMA,
    ...row,
    rejectedIds: new Set(rejectedIds as string[]),
    ...(pastAttempts === undefined ? {} : { pastAttempts: JSON.parse(String(pastAttempts)) }),
    ...(place === undefined ? {} : { order: JSON.parse(String(place)) }),
    effects: Object.fromEntries(
      Object.entries(Object(effects) as Record<string, object>).map(([name, one]) => [
        name,
        atTime(one, now),
      ]),
    ),
  } as unknown as InboxRow;
}

const TIMES = ['claimedAt', 'leaseUntil', 'endsBy', 'retryAt', 'startedAt', 'completedAt', 'endedAt'];

function atTime(row: object, now: number): Record<string, unknown> {
  const entries = Object.entries(row);
  return Object.fromEntries(
    entries.map(([name, value]) => [name, TIMES.includes(name) ? now + Number(value) : value]),
  );
}

/** Runs one statement. PostgreSQL stores no NUL characters, so they are left out. */
export async function run<C extends Columns>(
  sql: Sql,
  text: string,
  values: readonly unknown[],
  columns: C,
): Promise<RowOf<C>[]> {
  const stored = values.map((value) => (typeof value === 'string' ? value.replaceAll('\0', '') : value));
  return readRows(sql, text, stored, columns);
}

/** As {@link run}, for a statement outside a transaction: again if another transaction was in its way. */
export async function runAlone<C extends Columns>(
  sql: Sql,
  text: string,
  values: readonly unknown[],
  columns: C,
): Promise<RowOf<C>[]> {
  return onceMore(() => run(sql, text, values, columns));
}

/** Runs a statement or a transaction, again if another transaction was in its way. */
export async function onceMore<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      if (!isConflict(error) || tries === CONFLICT_TRIES) throw error;
    }
  }
}

/** A serialization failure, or a deadlock: the transaction wrote nothing, and may succeed immediately. */
export function isConflict(error: unknown): boolean {
  return /^(40001|40P01)$/.test(sqlState(error) ?? '');
}

/** Another transaction holds the row longer than `lock_timeout`. */
export function isLocked(error: unknown): boolean {
  return sqlState(error) === '55P03';
}

/** Returns true if one of Mailroom's own statements failed for a reason that is not the message's. */
export function isUnreachable(error: unknown): boolean {
  if (isMailroomError(error)) return isMailroomError(error, 'BAD_ROW');
  const state = sqlState(error);
  // 28: access is refused, 3D and 3F: no database or schema, 42501: no grant, 42P01 and 42703: no table or column, before a migration.
  return state === undefined || isRetryable(error) || /^(28...|3D...|3F...|42501|42P01|42703)$/.test(state);
}

/** Returns true if a statement of the handler failed because the server stopped or is read-only, or the connection ended. */
export function isServerGone(error: unknown): boolean {
  return /^(08...|25006|53...|57P0.)$/.test(sqlState(error) ?? '');
}
