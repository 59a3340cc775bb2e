import type { MessageKey } from '../../operations/inbox-rows.ts';
import { inboxKey } from '../keys.ts';
import type { Sql } from '../sql/database.ts';
import type { MessageColumns } from '../sql/message-columns.ts';
import type { RowOf } from '../sql/sql-rows.ts';
import { readInboxRow } from '../stored-rows.ts';
import { epochMs, KEY, textParameter } from './expressions.ts';
import { keyOf, messageOf, present, READ, run, selectionOf } from './inbox-row.ts';
import { joined, part, type StatementPart } from './statement.ts';

/** The columns that only operators read. */
const MORE = {
  consumer: 'base64',
  event_id: 'base64',
  processed_at: 'number?',
  rejected_at: 'number?',
  allowed_at: 'number?',
  allowed_by: 'base64?',
  allowed_reason: 'base64?',
  resolved_by: 'base64?',
  resolved_reason: 'base64?',
  discarded_at: 'number?',
  discarded_by: 'base64?',
  discarded_reason: 'base64?',
  replaced_by: 'base64?',
  commit_id: 'base64?',
  expires_at: 'number?',
  changed_at: 'number',
} as const;

const COLUMNS = { ...READ, ...MORE };

const ROWS = selectionOf(COLUMNS, epochMs);

/**
 * Reads messages by a list of their keys, in the order of those.
 *
 * @param keys - a query of the keys `consumer` and `event_id`. Its limit is one of messages, not of their effects
 */
export function messagesOf(sql: Sql, keys: StatementPart): Promise<MessageColumns[]> {
  const listed = '(i.consumer, i.event_id) IN (SELECT k.consumer, k.event_id FROM (';
  return readMessages(sql, joined([listed, keys, ') k)']));
}

/** The query of the keys of messages. @param keys - one or more */
export function keysOf(keys: readonly MessageKey[]): StatementPart {
  const each = keys.map(({ consumer, eventId }) =>
    part(`SELECT ${KEY} AS consumer, ${KEY} AS event_id`, textParameter(consumer), textParameter(eventId)),
  );
  return joined(each, ' UNION ALL ');
}

/** Reads messages, by their consumers and ids. @param where - a condition of `i` */
async function readMessages(sql: Sql, where: StatementPart): Promise<MessageColumns[]> {
  const rows = await run(sql, joined([ROWS, where, ' ORDER BY i.consumer, i.event_id, e.name']), COLUMNS);
  const messages = new Map<string, RowOf<typeof COLUMNS>[]>();
  for (const row of rows) {
    const key = JSON.stringify([row.consumer, row.event_id]);
    messages.set(key, [...(messages.get(key) ?? []), row]);
  }
  return [...messages.values()].map(([row, ...more]) => columnsOf(row as RowOf<typeof COLUMNS>, more));
}

/** Reads a message; `undefined` if it does not exist. */
export async function messageRow(
  sql: Sql,
  consumer: string,
  eventId: string,
): Promise<MessageColumns | undefined> {
  return (await readMessages(sql, keyOf({ consumer }, eventId)))[0];
}

function columnsOf(row: RowOf<typeof COLUMNS>, more: readonly RowOf<typeof COLUMNS>[]): MessageColumns {
  const { consumer, event_id: eventId, status, changed_at } = row;
  const at = (ms: number | undefined) => (ms === undefined ? undefined : Math.round(ms));
  const changedAt = Math.round(changed_at);
  const message = messageOf(row, [row, ...more], at);
  const item = present({
    ...message,
    ...inboxKey(consumer, eventId),
    fence: row.fence ?? '',
    unfinished: row.unfinished || undefined,
    outOfTime: row.out_of_time || undefined,
    runAnyway: row.run_anyway || undefined,
    rejectedIds: row.rejected_ids === undefined ? undefined : Reflect.get(message, 'rejectedIds'),
    processedAt: at(row.processed_at) ?? (status === 'PROCESSED' ? changedAt : undefined),
    rejectedAt: at(row.rejected_at),
    allowedAt: at(row.allowed_at),
    allowedBy: row.allowed_by,
    allowedReason: row.allowed_reason,
    resolvedBy: row.resolved_by,
    resolvedReason: row.resolved_reason,
    discardedAt: at(row.discarded_at) ?? (status === 'DISCARDED' ? changedAt : undefined),
    discardedBy: row.discarded_by,
    discardedReason: row.discarded_reason,
    replacedBy: row.replaced_by,
    commitId: row.commit_id,
    expiresAt: row.expires_at === undefined ? undefined : Math.ceil(row.expires_at / 1_000),
  });
  return { consumer, eventId, changedAt, row: readInboxRow(item as never) };
}
