/**
 * Expressions of statements, in which every parameter and every result is plain ASCII: no character set of a connection, no `sql_mode` that
 * changes what a backslash means, and no parser of a driver can change a value.
 *
 * Times are UTC, computed by the server, and never in the time zone of a session.
 */

/**
 * The time at which the statement began. A statement that has waited for a lock compares and writes this earlier time, as its caller does: nothing is due, and
 * no lease has passed, too early.
 */
export const NOW = 'UTC_TIMESTAMP(6)';

/** A parameter that {@link idParameter} makes of an event id or a UUID. */
export const ID = 'UNHEX(?)';

/** A parameter that {@link textParameter} makes of text. */
export const TEXT = 'CONVERT(FROM_BASE64(?) USING utf8mb4)';

/** A parameter that {@link textParameter} makes of the text of a key, a VARBINARY: a trailing space makes it another key. */
export const KEY = 'FROM_BASE64(?)';

/** A parameter in epoch milliseconds, as a time. */
export const TIME = "TIMESTAMP('1970-01-01 00:00:00') + INTERVAL ROUND(? * 1000) MICROSECOND";

/** A number of milliseconds from now on, as a time. */
export const FROM_NOW = `${NOW} + INTERVAL ROUND(? * 1000) MICROSECOND`;

/** A column with a time, as text: epoch milliseconds with three decimals. */
export function epochMs(column: string): string {
  return `CAST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', ${column}) / 1000 AS CHAR)`;
}

/** A column with an event id, to be read as text by {@link idOf}. */
export function idText(column: string): string {
  return `LOWER(HEX(${column}))`;
}

/** A column with text or the text of a key, to be read as `base64`. */
export function encoded(column: string): string {
  return `TO_BASE64(${column})`;
}

/** A column with a whole number, as text. */
export function numberText(column: string): string {
  return `CAST(${column} AS CHAR)`;
}

/** A condition or a column with a boolean, as text. */
export function booleanText(condition: string): string {
  return `IF(${condition}, 'true', 'false')`;
}

/** A list of parameters, such as `(UNHEX(?), UNHEX(?))`. @param count - 1 or more */
export function listOf(parameter: string, count: number): string {
  return `(${Array.from({ length: count }, () => parameter).join(', ')})`;
}

/**
 * The rows of a table with these ids, each looked up by the primary key: follows `FROM`, `UPDATE` or `DELETE mailroom.… FROM`. With `IN`, the server may
 * scan a small table instead, and then waits for the lock on every row that it passes, including those of producers that have not committed.
 *
 * @param count - the number of parameters, 1 or more, in the order in which the rows are locked
 */
export function byIds(table: string, count: number): string {
  const ids = Array.from({ length: count }, () => `SELECT ${ID} AS id`).join(' UNION ALL ');
  const column = table === 'commit' ? 'commit_id' : 'event_id';
  return `(${ids}) w STRAIGHT_JOIN mailroom.${table} FORCE INDEX (PRIMARY) ON ${column} = w.id`;
}

/** An event id as the parameter {@link ID}. */
export function idParameter(eventId: string): string {
  return eventId.replaceAll('-', '');
}

/** An event id from the text of {@link idText}. */
export function idOf(hex: string): string {
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

/** Text as the parameter {@link TEXT} or {@link KEY}. */
export function textParameter<T extends string | null | undefined>(text: T): string | null {
  return text === null || text === undefined ? null : Buffer.from(text as string).toString('base64');
}
