import { isTime } from '../base/clock.ts';
import type { DatabaseEngine } from '../base/database-engine.ts';
import { isEventId, outboxKeyOf } from '../store/event-id.ts';
import { EVENT_PREFIX } from '../store/keys.ts';
import { outboxPartition } from '../store/outbox-partition.ts';
import type { OutboxRow } from '../store/outbox-row.ts';
import { envelopeJson } from '../store/stored-envelope.ts';
import { isUnreadable, readOutboxRow, type UnreadableRow } from '../store/stored-rows.ts';
import { type Item, pagesOf, type Table } from '../store/table.ts';
import { inBatches } from './row-batches.ts';

/** An outbox row that cannot be read, with those of its attributes that can. */
interface UnreadableEvent
  extends UnreadableRow,
    Partial<Pick<OutboxRow, 'source' | 'envelope' | 'dueAt' | 'requeuedAt'>> {}

/**
 * A row of the outbox. `store`: the relay of that database publishes it, and no sweep does; absent for DynamoDB. `waitsFor`: the event of its aggregate before it,
 * which a relay publishes first.
 */
export type StoredEventRow = (OutboxRow | UnreadableEvent) & {
  readonly store?: DatabaseEngine | undefined;
  readonly waitsFor?: string | undefined;
};

/** The rows of a minute to read, in the order of their ids. */
export interface MinuteChoice {
  readonly status?: OutboxRow['status'] | undefined;
  readonly type?: string | undefined;
  readonly source?: string | undefined;
  /** A text in their envelopes. Rows whose envelope is compressed are returned, too. */
  readonly containing?: string | undefined;
  /** The beginning of their ids. */
  readonly idPrefix?: string | undefined;
  /** Only ids after this text. */
  readonly after?: string | undefined;
  /** The most rows that are read for a page, before the status, the type, the source and the text select among them. */
  readonly pageSize?: number | undefined;
}

/** One page of a minute. */
export interface EventPage<T> {
  readonly items: readonly T[];
  /** There may be more to read. */
  readonly more: boolean;
}

/** Reads the outbox. */
export interface OutboxRows {
  /** Reads the row of an event; `undefined` if it does not exist. @param consistent - the read sees every earlier write */
  byId(eventId: string, consistent?: boolean): Promise<StoredEventRow | undefined>;
  /** Reads the rows of events in batches of 100, and maps each with its event. Eventually consistent. Keeps their order. */
  byIds<T>(
    eventIds: readonly string[],
    map: (eventId: string, event: StoredEventRow | undefined) => T,
  ): Promise<T[]>;
  /**
   * Reads the events of a minute in one of its shards, page by page.
   *
   * @param map - called for one row at a time, so that one envelope at a time is inflated: up to 1 MB each, and a page has many
   */
  inMinute<T>(
    minute: string,
    shard: number,
    choice: MinuteChoice,
    map: (event: StoredEventRow) => T,
  ): AsyncIterable<EventPage<T>>;
}

/** Reads the outbox in a table. */
export function dynamoOutboxRows(table: Pick<Table, 'get' | 'getEach' | 'query'>): OutboxRows {
  return {
    byId: async (eventId, consistent = false) =>
      isEventId(eventId) ? storedEvent(await table.get(outboxKeyOf(eventId), { consistent })) : undefined,
    byIds: (eventIds, map) =>
      inBatches(eventIds, async (batch) => {
        const items = await table.getEach(batch.map(outboxKeyOf));
        return batch.map((eventId, index) => map(eventId, storedEvent(items[index])));
      }),
    inMinute: (minute, shard, choice, map) =>
      pagesOfShard(table, outboxPartition(minute, shard), choice, map),
  };
}

async function* pagesOfShard<T>(
  table: Pick<Table, 'query'>,
  pk: string,
  { containing, idPrefix = '', after, pageSize: limit, ...equal }: MinuteChoice,
  map: (event: StoredEventRow) => T,
): AsyncGenerator<EventPage<T>> {
  const where = Object.fromEntries(Object.entries(equal).filter(([, value]) => value !== undefined));
  const query = {
    pk,
    skPrefix: EVENT_PREFIX + idPrefix,
    limit,
    where,
    ...(containing !== undefined && { containing: { envelope: containing } }),
  };
  const from = after === undefined ? undefined : { PK: pk, SK: EVENT_PREFIX + after };
  for await (const { items, cursor } of pagesOf(table, query, from))
    yield { items: items.flatMap((item) => eventsIn(item).map(map)), more: cursor !== undefined };
}

function eventsIn(item: Item): readonly StoredEventRow[] {
  return [storedEvent(item) ?? []].flat();
}

/** Reads a stored item as an event. */
export function storedEvent(item: Item | undefined): OutboxRow | UnreadableEvent | undefined {
  const row = readOutboxRow(item);
  if (item === undefined || !isUnreadable(row)) return row;
  const envelope = envelopeJson(item);
  return {
    ...row,
    ...(typeof item.source === 'string' && { source: item.source }),
    ...(isTime(item.dueAt) && { dueAt: item.dueAt }),
    ...(isTime(item.requeuedAt) && { requeuedAt: item.requeuedAt }),
    ...(envelope.problem === undefined && { envelope: envelope.json }),
  };
}
