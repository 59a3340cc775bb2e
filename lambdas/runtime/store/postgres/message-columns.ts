import type { StoredMessageRow } from '../../operations/inbox-rows.ts';
import { inboxKey } from '../keys.ts';
import { SCHEMA } from '../row-schema.ts';
import { readInboxRow } from '../stored-rows.ts';
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

/** An item without the attributes that its row does not have. */
export function present(item: Item): Item {
  return Object.fromEntries(
    Object.entries(item).filter(([, value]) => value !== null && value !== undefined),
  );
}

const EFFECTS = `(SELECT pg_catalog.json_object_agg(e.name, pg_catalog.json_strip_nulls(pg_catalog.json_build_object('status', e.status, 'fence', e.fence, 'run', e.run,
    'endsBy', ${ms('e.ends_by')}, 'startedAt', ${ms('e.started_at')}, 'result', e.result, 'error', e.error,
    'nothingHappened', e.nothing_happened, CASE e.status WHEN 'COMPLETED' THEN 'completedAt' ELSE 'endedAt' END, ${ms('e.ended_at')})))
  FROM mailroom.effect e WHERE e.consumer = i.consumer AND e.event_id = i.event_id)::text`;

/** A message's key and its row. */
export interface MessageColumns {
  readonly consumer: string;
  readonly eventId: string;
  /** When its row was changed last, epoch milliseconds. */
  readonly changedAt: number;
  readonly row: StoredMessageRow | undefined;
}

/** Messages. */
export const INBOX: ColumnsOf<MessageColumns> = {
  select: `SELECT i.consumer, i.event_id AS id, i.type, i.status, i.fence, i.attempts, i.unfinished, i.out_of_time AS "outOfTime",
    ${ms('i.claimed_at')} AS "claimedAt", ${ms('i.lease_until')} AS "leaseUntil", ${ms('i.ends_by')} AS "endsBy", ${ms('i.retry_at')} AS "retryAt",
    ${ms('i.processed_at')} AS "processedAt", ${ms('i.rejected_at')} AS "rejectedAt", i.rejected_ids AS "rejectedIds", i.reason,
    ${ms('i.discarded_at')} AS "discardedAt", i.discarded_by AS "discardedBy", i.discarded_reason AS "discardedReason", i.replaced_by AS "replacedBy",
    i.resolved_by AS "resolvedBy", i.resolved_reason AS "resolvedReason", i.run_anyway AS "runAnyway", ${ms('i.allowed_at')} AS "allowedAt",
    i.allowed_by AS "allowedBy", i.allowed_reason AS "allowedReason", i.last_error AS "lastError", i.fingerprint, i.past_attempts AS past, i.place, i.superseded_by AS "supersededBy", i.commit_id AS "commitId", i.result, ceil(extract(epoch FROM i.expires_at))::float8 AS "expiresAt",
    ${ms('i.changed_at')} AS "changedAt", ${EFFECTS} AS effects FROM mailroom.inbox i`,
  read: ({ consumer, id, past, place, effects, rejectedIds, outOfTime, unfinished, changedAt, ...row }) => {
    const item = present({
      ...inboxKey(String(consumer), String(id)),
      schema: SCHEMA,
      ...row,
      fence: row.fence ?? '',
      rejectedIds: rejectedIds?.length > 0 ? new Set(rejectedIds) : undefined,
      outOfTime: outOfTime || undefined,
      unfinished: unfinished || undefined,
      processedAt: row.processedAt ?? (row.status === 'PROCESSED' ? changedAt : undefined),
      discardedAt: row.discardedAt ?? (row.status === 'DISCARDED' ? changedAt : undefined),
      runAnyway: row.runAnyway || undefined,
      pastAttempts: past === null ? undefined : JSON.parse(past),
      order: place === null ? undefined : JSON.parse(place),
      effects: effects === null ? {} : JSON.parse(effects),
    });
    return { consumer, eventId: String(id), changedAt, row: readInboxRow(item) };
  },
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
