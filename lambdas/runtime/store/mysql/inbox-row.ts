import { isMailroomError } from '../../base/errors.ts';
import type { InboxRules } from '../../inbox/inbox.ts';
import type { InboxRow } from '../inbox-row.ts';
import { SCHEMA } from '../row-schema.ts';
import type { Database, Sql } from '../sql/database.ts';
import type { DatabaseEvents } from '../sql/database-outbox.ts';
import { type Columns, type RowOf, readRows } from '../sql/sql-rows.ts';
import { booleanText, encoded, KEY, NOW, numberText, textParameter } from './expressions.ts';
import { isConnectionLost, isRetryable, mysqlErrno } from './mysql-error.ts';
import { joined, part, type StatementPart } from './statement.ts';

/** The inbox of one consumer in MySQL or MariaDB. */
export interface MysqlInboxContext<Tx> {
  readonly rules: InboxRules;
  readonly database: Database<Tx>;
  readonly outbox: DatabaseEvents<Tx>;
}

/** The maximum number of tries of a statement or a transaction that met another one and has had no effect. */
export const CONFLICT_TRIES = 4;

/** The condition for one message's row of `i`. */
export function keyOf({ consumer }: Pick<InboxRules, 'consumer'>, eventId: string): StatementPart {
  const values = [textParameter(consumer), textParameter(eventId)];
  return part(`i.consumer = ${KEY} AND i.event_id = ${KEY}`, ...values);
}

/** The time from now until that of a column, microseconds. */
const untilUs = (column: string) => numberText(`TIMESTAMPDIFF(MICROSECOND, ${NOW}, ${column})`);

/** The form in which each column of a message is read. Times are from now on the database's clock, so that no other clock judges them. */
const MESSAGE = {
  status: 'base64',
  type: 'base64',
  fence: 'base64?',
  attempts: 'number',
  unfinished: 'number',
  out_of_time: 'boolean',
  run_anyway: 'boolean',
  last_error: 'base64?',
  fingerprint: 'base64?',
  reason: 'base64?',
  result: 'base64?',
  past_attempts: 'base64?',
  place: 'base64?',
  superseded_by: 'number?',
  rejected_ids: 'base64?',
  claimed_at: 'number?',
  lease_until: 'number?',
  ends_by: 'number?',
  retry_at: 'number?',
} as const;

/** As {@link MESSAGE}, of an effect, whose columns have this prefix in the result. A message without effects has one row. */
const EFFECT = {
  effect_name: 'base64?',
  effect_status: 'base64?',
  effect_fence: 'base64?',
  effect_run: 'number?',
  effect_result: 'base64?',
  effect_error: 'base64?',
  effect_nothing_happened: 'number?',
  effect_started_at: 'number?',
  effect_ends_by: 'number?',
  effect_ended_at: 'number?',
} as const;

/** The columns of a message and its effects. */
export const READ = { ...MESSAGE, ...EFFECT };

/** The statement that reads messages, up to its condition. @param time - the form of a column with a time, as a number in text */
export function selectionOf(columns: Columns, time: (column: string) => string): string {
  const selected = Object.entries(columns).map(([name, type]) => {
    const column = name.startsWith('effect_') ? `e.${name.slice('effect_'.length)}` : `i.${name}`;
    if (type.startsWith('base64')) return `${encoded(column)} AS ${name}`;
    if (type === 'boolean') return `${booleanText(column)} AS ${name}`;
    const isTime = /_(at|until)$|ends_by$/.test(name);
    return `${isTime ? time(column) : numberText(column)} AS ${name}`;
  });
  return `SELECT ${selected.join(', ')}
  FROM mailroom.inbox i LEFT JOIN mailroom.effect e ON e.consumer = i.consumer AND e.event_id = i.event_id WHERE `;
}

const ROW = selectionOf(READ, untilUs);

/** Reads a message's row and its effects, with times of the rules' clock. */
export async function readRow(
  { rules }: Pick<MysqlInboxContext<never>, 'rules'>,
  sql: Sql,
  eventId: string,
): Promise<InboxRow | undefined> {
  const rows = await run(sql, joined([ROW, keyOf(rules, eventId)]), READ);
  // Now is after the answer, so a lease appears to end later than it does, never earlier.
  const now = rules.clock.now();
  const at = (us: number | undefined) => (us === undefined ? undefined : Math.round(now + us / 1_000));
  const [row] = rows;
  if (row === undefined) return undefined;
  return { PK: rules.consumer, SK: eventId, ...messageOf(row, rows, at) } as unknown as InboxRow;
}

type Times = (time: number | undefined) => number | undefined;

/** Makes a message of its rows, one for each effect. @param at - makes the time of a row a time of the message */
export function messageOf(row: RowOf<typeof READ>, rows: readonly RowOf<typeof READ>[], at: Times): object {
  return present({
    schema: SCHEMA,
    status: row.status,
    type: row.type,
    fence: row.fence,
    attempts: row.attempts,
    unfinished: row.unfinished,
    outOfTime: row.out_of_time,
    runAnyway: row.run_anyway,
    lastError: row.last_error,
    fingerprint: row.fingerprint,
    reason: row.reason,
    result: row.result,
    pastAttempts: row.past_attempts === undefined ? undefined : JSON.parse(row.past_attempts),
    order: row.place === undefined ? undefined : JSON.parse(row.place),
    supersededBy: row.superseded_by,
    rejectedIds: new Set(idsIn(row.rejected_ids)),
    claimedAt: at(row.claimed_at),
    leaseUntil: at(row.lease_until),
    endsBy: at(row.ends_by),
    retryAt: at(row.retry_at),
    effects: Object.fromEntries(
      rows.flatMap((one) => (one.effect_name === undefined ? [] : [[one.effect_name, effectOf(one, at)]])),
    ),
  });
}

function effectOf(one: RowOf<typeof EFFECT>, at: Times): object {
  const nothingHappened = one.effect_nothing_happened;
  return present({
    status: one.effect_status,
    fence: one.effect_fence,
    run: one.effect_run,
    result: one.effect_result,
    error: one.effect_error,
    nothingHappened: nothingHappened === undefined ? undefined : nothingHappened === 1,
    startedAt: at(one.effect_started_at),
    endsBy: at(one.effect_ends_by),
    [one.effect_status === 'COMPLETED' ? 'completedAt' : 'endedAt']: at(one.effect_ended_at),
  });
}

/** The entry of a message id in the column `rejected_ids`, in which entries follow each other. Inside a string of JSON, no quote follows a comma. */
export function idEntry(messageId: string): string {
  return `,${JSON.stringify(messageId)}`;
}

function idsIn(entries = ''): string[] {
  return JSON.parse(`[${entries.slice(1)}]`);
}

/** Attributes without those that a row does not have. */
export function present(attributes: object): object {
  return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined));
}

/** Runs one statement. */
export function run<C extends Columns>(
  sql: Sql,
  { text, values }: StatementPart,
  columns: C,
): Promise<RowOf<C>[]> {
  return readRows(sql, text, values, columns);
}

/** Repeats a statement or a transaction while others are in its way. @param work - has had no effect if it throws */
export async function repeated<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      if (!isConflict(error) || tries === CONFLICT_TRIES) throw error;
    }
  }
}

/** The transaction was rolled back as a whole, and may succeed immediately: a deadlock (1213), or a row that changed after a snapshot (1020). */
export function isConflict(error: unknown): boolean {
  const errno = mysqlErrno(error);
  return errno === 1213 || errno === 1020;
}

/** Another transaction holds the row: longer than `innodb_lock_wait_timeout` (1205), or the statement does not wait (3572). */
export function isLocked(error: unknown): boolean {
  const errno = mysqlErrno(error);
  return errno === 1205 || errno === 3572;
}

/** The server refuses the login or its access (1044, 1045, 1130, 1142, 1143, 1227, 1698), or the database, a table or a column is missing (1049, 1146, 1054). */
const NOT_REACHED: ReadonlySet<number> = new Set([
  1044, 1045, 1049, 1054, 1130, 1142, 1143, 1146, 1227, 1698,
]);

/** Returns true if one of Mailroom's own statements failed for a reason that is not the message's. */
export function isUnreachable(error: unknown): boolean {
  if (isMailroomError(error)) return isMailroomError(error, 'BAD_ROW');
  const errno = mysqlErrno(error);
  return errno === undefined || isRetryable(error) || NOT_REACHED.has(errno) || isConnectionLost(error);
}
