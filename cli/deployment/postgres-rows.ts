import { DEAD, OPERATION, OUTBOX, REJECTED } from '../../lambdas/runtime/store/postgres/columns.ts';
import { readLastSequence } from '../../lambdas/runtime/store/postgres/last-sequence.ts';
import { postgresReads } from '../../lambdas/runtime/store/postgres/mailroom-rows.ts';
import { INBOX, readColumns } from '../../lambdas/runtime/store/postgres/message-columns.ts';
import type { Sql } from '../../lambdas/runtime/store/postgres/sql.ts';
import { readJsonRows } from '../../lambdas/runtime/store/postgres/sql-rows.ts';
import { databaseRows } from './database-rows.ts';
import type { StoredRows } from './stored-rows.ts';

/** A time in the future, of a clock that was ahead, says nothing. */
const CONNECTORS = `SELECT c.slot::text AS name, extract(epoch FROM c.retention)::float8 * 1000::float8 AS "retentionMs",
  CASE WHEN c.captured_until <= clock_timestamp() THEN round(extract(epoch FROM c.captured_until)::float8 * 1000::float8) END AS "readUntil"
  FROM mailroom.capture c ORDER BY c.slot`;

/** The rows of a Mailroom in PostgreSQL. */
export function postgresRows(database: Sql): StoredRows {
  return databaseRows({
    ...postgresReads(database),
    pending: (lastId, limit) =>
      readColumns(database, OUTBOX, 'WHERE q.event_id <= $1::uuid ORDER BY q.event_id LIMIT $2::bigint', [
        lastId,
        limit,
      ]),
    openMessages: (consumer, limit) =>
      readColumns(
        database,
        INBOX,
        `WHERE i.consumer = $1::text AND i.status IN ('FAILED', 'PROCESSING') ORDER BY i.event_id LIMIT $2::bigint`,
        [consumer, limit],
      ),
    idsFrom: async (consumer, prefix, limit) => {
      const found = await readJsonRows(
        database,
        `SELECT i.event_id AS id FROM mailroom.inbox i
          WHERE i.consumer = $1::text AND i.status IN ('REJECTED', 'FAILED', 'PROCESSING')
            AND starts_with(i.event_id, $2::text) ORDER BY i.event_id LIMIT $3::bigint`,
        [consumer, prefix, limit],
      );
      return found.map(({ id }) => String(id));
    },
    lastSequence: (key) => readLastSequence(database, key),
    dead: (limit) => readColumns(database, DEAD, 'ORDER BY d.event_id LIMIT $1::bigint', [limit]),
    rejected: (consumer, limit) =>
      readColumns(
        database,
        REJECTED,
        `WHERE i.consumer = $1::text AND i.status = 'REJECTED' ORDER BY i.event_id LIMIT $2::bigint`,
        [consumer, limit],
      ),
    operations: ({ since, until }, limit) =>
      readColumns(
        database,
        OPERATION,
        'WHERE o.at >= $1::timestamptz AND o.at <= $2::timestamptz ORDER BY o.at, o.token LIMIT $3::bigint',
        [timeAt(since), timeAt(until), limit],
      ),
    connectors: async () =>
      (await readJsonRows(database, CONNECTORS)).map(({ name, retentionMs, readUntil }) => ({
        name: String(name),
        retentionMs: Number(retentionMs),
        readUntil: typeof readUntil === 'number' ? readUntil : undefined,
        beatAt: undefined,
      })),
    createdAt: async () => {
      const [row] = await readJsonRows(
        database,
        'SELECT round(extract(epoch FROM min(applied_at))::float8 * 1000::float8) AS at FROM mailroom.migration',
      );
      return Number(row?.at);
    },
  });
}

function timeAt(time: number): string {
  return new Date(time).toISOString();
}
