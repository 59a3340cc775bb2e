import type { StoredEventRow } from '../../operations/outbox-rows.ts';
import type { Sql } from '../sql/database.ts';
import type { EventRange, MailroomReads } from '../sql/mailroom-rows.ts';
import { readRows } from '../sql/sql-rows.ts';
import { eventOf } from '../sql/stored-columns.ts';
import {
  booleanText,
  encoded,
  epochMs,
  ID,
  idOf,
  idParameter,
  idText,
  KEY,
  listOf,
  numberText,
  TEXT,
  textParameter,
} from './expressions.ts';
import { run } from './inbox-row.ts';
import { keysOf, messagesOf } from './message-columns.ts';
import { joined, part, type StatementPart } from './statement.ts';

/** The status of an event: that of the first of its rows. */
const STATUS = `CASE WHEN q.event_id IS NOT NULL THEN 'PENDING' WHEN d.event_id IS NOT NULL THEN 'DEAD'
  WHEN x.event_id IS NOT NULL THEN 'DISCARDED' WHEN p.event_id IS NOT NULL THEN 'PUBLISHED' WHEN c.event_id IS NOT NULL THEN 'CANCELLED' ELSE 'LOST' END`;

/** The form in which each column of an event is read. Times are epoch milliseconds. */
const EVENT = {
  id: 'text',
  source: 'base64',
  type: 'base64',
  traceId: 'base64?',
  envelope: 'base64',
  status: 'text',
  attempts: 'number',
  isHeld: 'boolean',
  waitsFor: 'text?',
  dueAt: 'number?',
  deadAt: 'number?',
  publishedAt: 'number?',
  resentAt: 'number?',
  cancelledAt: 'number?',
  discardedAt: 'number?',
  discardedBy: 'base64?',
  discardedReason: 'base64?',
  lastError: 'base64?',
  fingerprint: 'base64?',
} as const;

const SELECT = `SELECT ${idText('e.event_id')} AS id, ${encoded('e.source')} AS source, ${encoded('e.type')} AS type, ${encoded('e.trace_id')} AS traceId,
  ${encoded('e.envelope')} AS envelope, ${STATUS} AS status, ${numberText('COALESCE(q.attempts, d.attempts, 0)')} AS attempts,
  ${booleanText('q.fence IS NOT NULL')} AS isHeld, ${idText('q.waits_for')} AS waitsFor, ${epochMs('q.due_at')} AS dueAt, ${epochMs('d.dead_at')} AS deadAt,
  ${epochMs('p.published_at')} AS publishedAt, ${epochMs('p.resent_at')} AS resentAt, ${epochMs('c.cancelled_at')} AS cancelledAt,
  ${epochMs('x.discarded_at')} AS discardedAt, ${encoded('x.operator')} AS discardedBy, ${encoded('x.reason')} AS discardedReason,
  ${encoded('COALESCE(q.last_error, d.last_error)')} AS lastError, ${encoded('d.fingerprint')} AS fingerprint
  FROM mailroom.event e LEFT JOIN mailroom.pending q USING (event_id) LEFT JOIN mailroom.dead d USING (event_id)
  LEFT JOIN mailroom.cancelled c USING (event_id) LEFT JOIN mailroom.discarded x USING (event_id) LEFT JOIN mailroom.published p USING (event_id) `;

/** Reads events. @param rest - the clauses after `SELECT … FROM …` */
export async function readEvents(sql: Sql, rest: StatementPart): Promise<StoredEventRow[]> {
  const rows = await run(sql, joined([SELECT, rest]), EVENT);
  return rows.flatMap(({ id, waitsFor, ...row }) => {
    const rounded = Object.entries(row).map(([name, value]) => [
      name,
      typeof value === 'number' ? Math.round(value) : value,
    ]);
    const ids = { id: idOf(id), ...(waitsFor !== undefined && { waitsFor: idOf(waitsFor) }) };
    return eventOf('mysql', { ...Object.fromEntries(rounded), ...ids }) ?? [];
  });
}

/** The form in which each column of a captured event is read. It has no other rows. */
const CAPTURED = {
  id: 'text',
  source: 'base64',
  type: 'base64',
  traceId: 'base64?',
  envelope: 'base64',
} as const;

const SELECT_CAPTURED = `SELECT LOWER(e.event_id) AS id, ${encoded('e.source')} AS source, ${encoded('e.type')} AS type, ${encoded('e.trace_id')} AS traceId,
  ${encoded('e.envelope')} AS envelope FROM mailroom.captured e `;

/** Reads events that are left to change data capture. @param rest - the clauses after `SELECT … FROM …` */
async function readCaptured(sql: Sql, rest: StatementPart): Promise<StoredEventRow[]> {
  const rows = await run(sql, joined([SELECT_CAPTURED, rest]), CAPTURED);
  const captured = { status: 'PUBLISHED', publishedBy: 'cdc', attempts: 0 };
  return rows.flatMap((row) => eventOf('mysql', { ...row, ...captured }) ?? []);
}

/** A parameter of `captured`, whose ids are text, as is that of {@link ID}. */
const CAPTURED_ID = { id: '?', parameter: (eventId: string) => eventId.toLowerCase() };

const STORED_ID = { id: ID, parameter: idParameter };

/**
 * The reads of the outbox and the inboxes of a Mailroom in MySQL.
 *
 * @param database - of a primary: what a replica has not received yet would count as absent
 */
export function mysqlReads(database: Sql): MailroomReads {
  return {
    events: async (eventIds) => {
      if (eventIds.length === 0) return [];
      const where = ({ id, parameter }: typeof CAPTURED_ID) =>
        part(`WHERE e.event_id IN ${listOf(id, eventIds.length)}`, ...eventIds.map(parameter));
      const stored = await readEvents(database, where(STORED_ID));
      return [...stored, ...(await readCaptured(database, where(CAPTURED_ID)))];
    },
    eventsIn: async (range) => {
      const { status } = range.choice;
      const isStatus = status === undefined ? [] : [part(`${STATUS} = ?`, status)];
      const stored = await readEvents(database, rangeOf(range, STORED_ID, isStatus));
      if (status !== undefined && status !== 'PUBLISHED') return stored;
      const captured = await readCaptured(database, rangeOf(range, CAPTURED_ID, []));
      const all = [...stored, ...captured];
      return all.toSorted((a, b) => (a.SK < b.SK ? -1 : 1)).slice(0, range.limit);
    },
    messages: async (keys) => (keys.length === 0 ? [] : messagesOf(database, keysOf(keys))),
    retentions: (consumer) =>
      readRows(
        database,
        `SELECT ${numberText('days')} AS days, ${numberText("ROUND(TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', since) / 1000)")} AS since
          FROM mailroom.inbox_retention WHERE consumer = ${KEY} ORDER BY mailroom.inbox_retention.since`,
        [textParameter(consumer)],
        { days: 'number', since: 'number' },
      ),
  };
}

/** Names are compared as bytes. */
function rangeOf(
  { from, to, after, choice, limit }: EventRange,
  { id, parameter }: typeof CAPTURED_ID,
  isStatus: readonly StatementPart[],
): StatementPart {
  const { type, source, containing } = choice;
  const chosen = [
    type === undefined ? [] : part(`CAST(e.type AS BINARY) = ${KEY}`, textParameter(type)),
    source === undefined ? [] : part(`CAST(e.source AS BINARY) = ${KEY}`, textParameter(source)),
    containing === undefined ? [] : part(`LOCATE(${TEXT}, e.envelope) > 0`, textParameter(containing)),
    isStatus,
  ].flat();
  const ids = [from, to, after].map(parameter);
  const bounds = part(`e.event_id >= ${id} AND e.event_id <= ${id} AND e.event_id > ${id}`, ...ids);
  return joined([
    'WHERE ',
    joined([bounds, ...chosen], ' AND '),
    part(' ORDER BY e.event_id LIMIT ?', limit),
  ]);
}
