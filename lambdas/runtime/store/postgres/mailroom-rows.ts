import { MINUTE_MS } from '../../base/units.ts';
import type { InboxRows } from '../../operations/inbox-rows.ts';
import type { MailroomRows } from '../../operations/mailroom-rows.ts';
import type { EventPage, MinuteChoice, OutboxRows, StoredEventRow } from '../../operations/outbox-rows.ts';
import { inBatches } from '../../operations/row-batches.ts';
import { eventIdInSortKey, isEventId } from '../event-id.ts';
import type { InboxHistory } from '../inbox-row.ts';
import { inboxHistoryKey } from '../keys.ts';
import { asRow, SCHEMA } from '../row-schema.ts';
import { OUTBOX, STATUS } from './columns.ts';
import { INBOX, messageRow, readColumns } from './message-columns.ts';
import type { Sql } from './sql.ts';
import { readJsonRows } from './sql-rows.ts';

/** The events that a statement reads at once. */
const PAGE_MAX = 1_000;

/** The first and the last event id that begin with a text. */
const FIRST = '00000000-0000-0000-0000-000000000000';
const LAST = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

const SINCE = 'round(extract(epoch FROM since)::float8 * 1000::float8)';

/**
 * The outbox and the inboxes of a Mailroom in PostgreSQL. Its outbox has no shards: its events are read as those of shard 0.
 *
 * @param database - a view of every row: what row-level security hides would count as absent
 */
export function postgresMailroomRows(database: Sql): MailroomRows {
  return { outbox: outboxRows(database), inbox: inboxRows(database) };
}

function outboxRows(database: Sql): OutboxRows {
  const read = (rest: string, values: readonly unknown[]) => readColumns(database, OUTBOX, rest, values);
  return {
    byId: async (eventId) =>
      isEventId(eventId) ? (await read('WHERE e.event_id = $1::uuid', [eventId]))[0] : undefined,
    byIds: (eventIds, map) =>
      inBatches(eventIds, async (batch) => {
        const found = await read('WHERE e.event_id = ANY($1::text[]::uuid[])', [batch]);
        const byId = new Map(found.map((event) => [eventIdInSortKey(event.SK), event]));
        return batch.map((eventId) => map(eventId, byId.get(eventId)));
      }),
    inMinute: (minute, shard, choice, map) => pagesOfMinute(read, minute, shard, choice, map),
  };
}

function inboxRows(database: Sql): InboxRows {
  return {
    byEvent: async (consumer, eventId) => (await messageRow(database, consumer, eventId))?.row,
    byEvents: (messages, map) =>
      inBatches(messages, async (batch) => {
        const found = await readColumns(
          database,
          INBOX,
          'JOIN unnest($1::text[], $2::text[]) AS wanted (consumer, event_id) USING (consumer, event_id)',
          [batch.map(({ consumer }) => consumer), batch.map(({ eventId }) => eventId)],
        );
        const byKey = new Map(found.map(({ row, ...key }) => [keyText(key), row]));
        return batch.map((one) => map(one, byKey.get(keyText(one))));
      }),
    history: async (consumer) => {
      const retentions = await readJsonRows(
        database,
        `SELECT days, ${SINCE} AS since FROM mailroom.inbox_retention WHERE consumer = $1::text ORDER BY since`,
        [consumer],
      );
      const changedAt = retentions.at(-1)?.since;
      if (changedAt === undefined) return undefined;
      return asRow<InboxHistory>({ ...inboxHistoryKey(consumer), schema: SCHEMA, retentions, changedAt });
    },
  };
}

async function* pagesOfMinute<T>(
  read: (rest: string, values: readonly unknown[]) => Promise<StoredEventRow[]>,
  minute: string,
  shard: number,
  { status, type, source, containing, idPrefix = '', after = '', pageSize = PAGE_MAX }: MinuteChoice,
  map: (event: StoredEventRow) => T,
): AsyncGenerator<EventPage<T>> {
  if (shard !== 0) return;
  const startsAt = Date.parse(`${minute}Z`);
  const limit = Math.min(pageSize, PAGE_MAX);
  const page = `WHERE e.event_id >= $1::uuid AND e.event_id <= $2::uuid AND e.event_id >= $3::uuid AND e.event_id <= $4::uuid AND e.event_id > $5::uuid
    AND ($6::text IS NULL OR e.type = $6::text) AND ($7::text IS NULL OR e.source = $7::text)
    AND ($8::text IS NULL OR position($8::text IN e.envelope) > 0) AND ($10::text IS NULL OR ${STATUS} = $10::text)
    ORDER BY e.event_id LIMIT $9::int`;
  const bounds = [firstIdAt(startsAt), lastIdAt(startsAt + MINUTE_MS - 1)];
  const prefixed = [completed(idPrefix, FIRST), completed(idPrefix, LAST)];
  for (let from = completed(after, FIRST), more = true; more; ) {
    const chosen = [type ?? null, source ?? null, containing ?? null];
    const found = await read(page, [...bounds, ...prefixed, from, ...chosen, limit, status ?? null]);
    from = eventIdInSortKey(found.at(-1)?.SK) ?? LAST;
    more = found.length >= limit;
    yield { items: found.map(map), more };
  }
}

function keyText({ consumer, eventId }: { readonly consumer: string; readonly eventId: string }): string {
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
