import { MINUTE_MS } from '../../base/units.ts';
import type { InboxRows, MessageKey } from '../../operations/inbox-rows.ts';
import type { MailroomRows } from '../../operations/mailroom-rows.ts';
import type { EventPage, MinuteChoice, OutboxRows, StoredEventRow } from '../../operations/outbox-rows.ts';
import { inBatches } from '../../operations/row-batches.ts';
import { eventIdInSortKey, isEventId } from '../event-id.ts';
import type { InboxHistory } from '../inbox-row.ts';
import { inboxHistoryKey } from '../keys.ts';
import { asRow, SCHEMA } from '../row-schema.ts';
import type { MessageColumns } from './message-columns.ts';

/** The events that one statement reads, in the order of their ids. */
export interface EventRange {
  /** The first and the last id. */
  readonly from: string;
  readonly to: string;
  /** Only ids after this one. */
  readonly after: string;
  readonly choice: Pick<MinuteChoice, 'status' | 'type' | 'source' | 'containing'>;
  readonly limit: number;
}

/** The reads of one kind of database, each of which is a statement. */
export interface MailroomReads {
  /** Reads events by their ids. */
  events(eventIds: readonly string[]): Promise<StoredEventRow[]>;
  eventsIn(range: EventRange): Promise<StoredEventRow[]>;
  /** Reads messages by their keys. */
  messages(keys: readonly MessageKey[]): Promise<MessageColumns[]>;
  /** Reads the retentions of a consumer's inbox, in the order of their beginnings. */
  retentions(consumer: string): Promise<InboxHistory['retentions']>;
}

/** The events that a statement reads at once. */
const PAGE_MAX = 1_000;

/** The first and the last event id that begin with a text. */
const FIRST = '00000000-0000-0000-0000-000000000000';
const LAST = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** The outbox and the inboxes of a Mailroom in a database. Its outbox has no shards: its events are read as those of shard 0. */
export function databaseMailroomRows(reads: MailroomReads): MailroomRows {
  return { outbox: outboxRows(reads), inbox: inboxRows(reads) };
}

function outboxRows(reads: MailroomReads): OutboxRows {
  return {
    byId: async (eventId) => (isEventId(eventId) ? (await reads.events([eventId]))[0] : undefined),
    byIds: (eventIds, map) =>
      inBatches(eventIds, async (batch) => {
        const found = await reads.events(batch);
        const byId = new Map(found.map((event) => [eventIdInSortKey(event.SK), event]));
        return batch.map((eventId) => map(eventId, byId.get(eventId)));
      }),
    inMinute: (minute, shard, choice, map) => pagesOfMinute(reads, minute, shard, choice, map),
  };
}

function inboxRows(reads: MailroomReads): InboxRows {
  return {
    byEvent: async (consumer, eventId) => (await reads.messages([{ consumer, eventId }]))[0]?.row,
    byEvents: (messages, map) =>
      inBatches(messages, async (batch) => {
        const found = await reads.messages(batch);
        const byKey = new Map(found.map(({ row, ...key }) => [keyText(key), row]));
        return batch.map((one) => map(one, byKey.get(keyText(one))));
      }),
    history: async (consumer) => {
      const retentions = await reads.retentions(consumer);
      const changedAt = retentions.at(-1)?.since;
      if (changedAt === undefined) return undefined;
      return asRow<InboxHistory>({ ...inboxHistoryKey(consumer), schema: SCHEMA, retentions, changedAt });
    },
  };
}

async function* pagesOfMinute<T>(
  reads: MailroomReads,
  minute: string,
  shard: number,
  { idPrefix = '', after = '', pageSize = PAGE_MAX, ...choice }: MinuteChoice,
  map: (event: StoredEventRow) => T,
): AsyncGenerator<EventPage<T>> {
  if (shard !== 0) return;
  const startsAt = Date.parse(`${minute}Z`);
  const limit = Math.min(pageSize, PAGE_MAX);
  const from = [firstIdAt(startsAt), completed(idPrefix, FIRST)].toSorted().at(-1) ?? FIRST;
  const to = [lastIdAt(startsAt + MINUTE_MS - 1), completed(idPrefix, LAST)].toSorted()[0] ?? LAST;
  let last = completed(after, FIRST);
  for (let more = true; more; ) {
    const found = await reads.eventsIn({ from, to, after: last, choice, limit });
    last = eventIdInSortKey(found.at(-1)?.SK) ?? LAST;
    more = found.length >= limit;
    yield { items: found.map(map), more };
  }
}

function keyText({ consumer, eventId }: MessageKey): string {
  return JSON.stringify([consumer, eventId]);
}

/** The first id of a time. */
function firstIdAt(time: number): string {
  return completed(idPrefixAt(time), FIRST);
}

/** The last id of a time. */
export function lastIdAt(time: number): string {
  return completed(idPrefixAt(time), LAST);
}

function idPrefixAt(time: number): string {
  const hex = Math.max(0, Math.floor(time)).toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}`;
}

/** The first or the last id that begins with a text. */
function completed(prefix: string, bound: string): string {
  return prefix + bound.slice(prefix.length);
}
