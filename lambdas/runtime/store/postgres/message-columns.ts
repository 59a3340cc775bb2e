import { type MessageColumns, messageOf } from '../sql/message-columns.ts';
import type { Item } from '../table.ts';
import { epochMs as ms } from './inbox-row.ts';
import type { Sql } from './sql.ts';
import { readJsonRows } from './sql-rows.ts';

/** The columns of a table, and the row that they make. A row that cannot be read is reported as one in DynamoDB is. */
export interface ColumnsOf<R> {
  /** Its `SELECT … FROM …`. */
  readonly select: string;
  read(columns: Item): R | undefined;
}

const EFFECTS = `(SELECT pg_catalog.json_object_agg(e.name, pg_catalog.json_strip_nulls(pg_catalog.json_build_object('status', e.status, 'fence', e.fence, 'run', e.run,
    'endsBy', ${ms('e.ends_by')}, 'startedAt', ${ms('e.started_at')}, 'result', e.result, 'error', e.error,
    'nothingHappened', e.nothing_happened, CASE e.status WHEN 'COMPLETED' THEN 'completedAt' ELSE 'endedAt' END, ${ms('e.ended_at')})))
  FROM mailroom.effect e WHERE e.consumer = i.consumer AND e.event_id = i.event_id)::text`;

/** Messages. */
export const INBOX: ColumnsOf<MessageColumns> = {
  select: `SELECT i.consumer, i.event_id AS id, i.type, i.status, i.fence, i.attempts, i.unfinished, i.out_of_time AS "outOfTime",
    ${ms('i.claimed_at')} AS "claimedAt", ${ms('i.lease_until')} AS "leaseUntil", ${ms('i.ends_by')} AS "endsBy", ${ms('i.retry_at')} AS "retryAt",
    ${ms('i.processed_at')} AS "processedAt", ${ms('i.rejected_at')} AS "rejectedAt", i.rejected_ids AS "rejectedIds", i.reason,
    ${ms('i.discarded_at')} AS "discardedAt", i.discarded_by AS "discardedBy", i.discarded_reason AS "discardedReason", i.replaced_by AS "replacedBy",
    i.resolved_by AS "resolvedBy", i.resolved_reason AS "resolvedReason", i.run_anyway AS "runAnyway", ${ms('i.allowed_at')} AS "allowedAt",
    i.allowed_by AS "allowedBy", i.allowed_reason AS "allowedReason", i.last_error AS "lastError", i.fingerprint, i.past_attempts AS past, i.place, i.superseded_by AS "supersededBy", i.commit_id AS "commitId", i.result, ceil(extract(epoch FROM i.expires_at))::float8 AS "expiresAt",
    ${ms('i.changed_at')} AS "changedAt", ${EFFECTS} AS effects FROM mailroom.inbox i`,
  read: ({ effects, ...row }) =>
    messageOf({ ...row, effects: effects === null ? undefined : JSON.parse(effects) }),
};

/** Reads rows of a table. @param rest - the clauses after its `SELECT … FROM …` */
export async function readColumns<R>(
  database: Sql,
  columns: ColumnsOf<R>,
  rest: string,
  values: readonly unknown[],
): Promise<R[]> {
  const found = await readJsonRows(database, `${columns.select} ${rest}`, values);
  return found.flatMap((row) => columns.read(row) ?? []);
}

/** Reads a message; `undefined` if it does not exist. */
export async function messageRow(database: Sql, consumer: string, eventId: string) {
  const where = 'WHERE i.consumer = $1::text AND i.event_id = $2::text';
  return (await readColumns(database, INBOX, where, [consumer, eventId]))[0];
}
