import { DAY_MS } from '../../lambdas/runtime/base/units.ts';
import {
  encoded,
  epochMs,
  ID,
  idOf,
  idParameter,
  idText,
  KEY,
  NOW,
  numberText,
  TIME,
  textParameter,
} from '../../lambdas/runtime/store/mysql/expressions.ts';
import { readLastSequence } from '../../lambdas/runtime/store/mysql/last-sequence.ts';
import { mysqlReads, readEvents } from '../../lambdas/runtime/store/mysql/mailroom-rows.ts';
import { messagesOf } from '../../lambdas/runtime/store/mysql/message-columns.ts';
import { part } from '../../lambdas/runtime/store/mysql/statement.ts';
import type { Sql } from '../../lambdas/runtime/store/sql/database.ts';
import { readOneRow, readRows } from '../../lambdas/runtime/store/sql/sql-rows.ts';
import { deadOf, operationOf, rejectedOf } from '../../lambdas/runtime/store/sql/stored-columns.ts';
import { databaseRows } from './database-rows.ts';
import type { StoredRows } from './stored-rows.ts';

/** A time as a whole number, epoch milliseconds. */
const wholeMs = (column: string) =>
  numberText(`ROUND(TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', ${column}) / 1000)`);

/** The limit of a list without one. */
const ALL = Number.MAX_SAFE_INTEGER;

const DEAD = `SELECT ${idText('d.event_id')} AS id, ${wholeMs('d.dead_at')} AS deadAt, ${encoded("COALESCE(e.type, 'unknown')")} AS type,
  ${encoded('d.last_error')} AS lastError, ${encoded('d.fingerprint')} AS fingerprint
  FROM mailroom.dead d LEFT JOIN mailroom.event e USING (event_id) ORDER BY d.event_id LIMIT ?`;

const REJECTED = `SELECT ${encoded('i.consumer')} AS consumer, ${encoded('i.event_id')} AS id, ${wholeMs('COALESCE(i.rejected_at, i.changed_at)')} AS rejectedAt,
  ${encoded("COALESCE(i.reason, 'unknown')")} AS reason, ${encoded("COALESCE(i.last_error, '')")} AS lastError, ${encoded("COALESCE(i.fingerprint, '')")} AS fingerprint,
  ${epochMs('i.expires_at')} AS expires_at
  FROM mailroom.inbox i WHERE i.consumer = ${KEY} AND i.status = 'REJECTED' ORDER BY i.event_id LIMIT ?`;

const OPERATIONS = `SELECT ${wholeMs('o.at')} AS at_ms, ${encoded('o.token')} AS token, ${encoded('o.operator')} AS operator, ${encoded('o.command')} AS command,
  ${encoded('o.subject')} AS subject, ${encoded('o.reason')} AS reason
  FROM mailroom.operation o WHERE o.at >= ${TIME} AND o.at <= ${TIME} ORDER BY o.at, o.token LIMIT ?`;

const OPEN = `SELECT consumer, event_id FROM mailroom.inbox WHERE consumer = ${KEY} AND status IN ('FAILED', 'PROCESSING') ORDER BY event_id LIMIT ?`;

/** Ids are bytes, and so is the beginning. */
const IDS = `SELECT ${encoded('i.event_id')} AS id FROM mailroom.inbox i WHERE i.consumer = ${KEY} AND i.status IN ('REJECTED', 'FAILED', 'PROCESSING')
  AND LEFT(i.event_id, ?) = ${KEY} ORDER BY i.event_id LIMIT ?`;

const CONNECTORS = `SELECT ${encoded('c.connector')} AS name, ${numberText('c.retention_days')} AS days,
  ${wholeMs(`IF(c.beat_at <= ${NOW}, c.beat_at, NULL)`)} AS beatAt FROM mailroom.capture c ORDER BY c.connector`;

/** The rows of a Mailroom in MySQL. @param database - of a primary */
export function mysqlRows(database: Sql): StoredRows {
  return databaseRows({
    ...mysqlReads(database),
    pending: (lastId, limit) => {
      const rest = `WHERE q.event_id <= ${ID} ORDER BY q.event_id LIMIT ?`;
      return readEvents(database, part(rest, idParameter(lastId), limit ?? ALL));
    },
    openMessages: (consumer, limit) =>
      messagesOf(database, part(OPEN, textParameter(consumer), limit ?? ALL)),
    idsFrom: async (consumer, prefix, limit) => {
      const values = [textParameter(consumer), Buffer.byteLength(prefix), textParameter(prefix), limit];
      return (await readRows(database, IDS, values, { id: 'base64' })).map(({ id }) => id);
    },
    lastSequence: (key) => readLastSequence(database, key),
    dead: async (limit) => {
      const columns = {
        id: 'text',
        deadAt: 'number',
        type: 'base64',
        lastError: 'base64',
        fingerprint: 'base64',
      } as const;
      const rows = await readRows(database, DEAD, [limit ?? ALL], columns);
      return rows.flatMap(({ id, ...row }) => deadOf({ ...row, id: idOf(id) }) ?? []);
    },
    rejected: async (consumer, limit) => {
      const columns = {
        consumer: 'base64',
        id: 'base64',
        rejectedAt: 'number',
        reason: 'base64',
        lastError: 'base64',
        fingerprint: 'base64',
        expires_at: 'number?',
      } as const;
      const rows = await readRows(database, REJECTED, [textParameter(consumer), limit ?? ALL], columns);
      return rows.flatMap(({ expires_at: at, ...row }) => {
        const expiresAt = at === undefined ? undefined : Math.ceil(at / 1_000);
        return rejectedOf({ ...row, expiresAt }) ?? [];
      });
    },
    operations: async ({ since, until }, limit) => {
      const columns = {
        at_ms: 'number',
        token: 'base64',
        operator: 'base64',
        command: 'base64',
        subject: 'base64',
        reason: 'base64',
      } as const;
      const rows = await readRows(database, OPERATIONS, [since, until, limit], columns);
      return rows.flatMap(({ at_ms: at, operator: by, ...row }) => operationOf({ ...row, at, by }) ?? []);
    },
    connectors: async () => {
      const columns = { name: 'base64', days: 'number', beatAt: 'number?' } as const;
      const rows = await readRows(database, CONNECTORS, [], columns);
      return rows.map(({ name, days, beatAt }) => ({
        name,
        retentionMs: days * DAY_MS,
        readUntil: undefined,
        beatAt,
      }));
    },
    createdAt: async () => {
      const text = `SELECT ${wholeMs('MIN(applied_at)')} AS created FROM mailroom.migration`;
      return (await readOneRow(database, text, [], { created: 'number' })).created;
    },
  });
}
