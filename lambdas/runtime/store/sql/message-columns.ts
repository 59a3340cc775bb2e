import type { StoredMessageRow } from '../../operations/inbox-rows.ts';
import { inboxKey } from '../keys.ts';
import { SCHEMA } from '../row-schema.ts';
import { readInboxRow } from '../stored-rows.ts';
import type { Item } from '../table.ts';

/** A message's key and its row. */
export interface MessageColumns {
  readonly consumer: string;
  readonly eventId: string;
  /** When its row was changed last, epoch milliseconds. */
  readonly changedAt: number;
  readonly row: StoredMessageRow | undefined;
}

/** An item without the attributes that its row does not have. */
export function present(item: Item): Item {
  return Object.fromEntries(
    Object.entries(item).filter(([, value]) => value !== null && value !== undefined),
  );
}

/**
 * A message, from its columns: times are epoch milliseconds, `past` and `place` the JSON that is stored, `effects` its effects by their names. A row
 * that cannot be read is reported as one in DynamoDB is.
 */
export function messageOf(columns: Item): MessageColumns {
  const { consumer, id, past, place, effects, rejectedIds, outOfTime, unfinished, changedAt, ...row } =
    present(columns);
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
    pastAttempts: past === undefined ? undefined : JSON.parse(past),
    order: place === undefined ? undefined : JSON.parse(place),
    effects: effects ?? {},
  });
  return { consumer: String(consumer), eventId: String(id), changedAt, row: readInboxRow(item) };
}
