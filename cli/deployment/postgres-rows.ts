import { MINUTE_MS } from '../../lambdas/runtime/base/units.ts';
import type {
  EventPage,
  MinuteChoice,
  StoredEventRow,
} from '../../lambdas/runtime/operations/outbox-rows.ts';
import { inBatches } from '../../lambdas/runtime/operations/row-batches.ts';
import type { Sql } from '../../lambdas/runtime/postgres/sql.ts';
import { readJsonRows } from '../../lambdas/runtime/postgres/sql-rows.ts';
import { eventIdInSortKey, isEventId } from '../../lambdas/runtime/store/event-id.ts';
import type { InboxHistory } from '../../lambdas/runtime/store/inbox-row.ts';
import { inboxHistoryKey } from '../../lambdas/runtime/store/keys.ts';
import { asRow, SCHEMA } from '../../lambdas/runtime/store/row-schema.ts';
import { readable } from '../../lambdas/runtime/store/stored-rows.ts';
import { type ColumnsOf, DEAD, INBOX, OPERATION, OUTBOX, REJECTED, STATUS } from './postgres-columns.ts';
import { isNotDue, type PartialList } from './rows-reader.ts';
import type { StoredRows } from './stored-rows.ts';

/** The events that a statement reads at once. */
const PAGE_MAX = 1_000;

/** The most rows of a list without another limit. */
const LIST_MAX = 10_000;

/** The first and the last event id that begin with a text. */
const FIRST = '00000000-0000-0000-0000-000000000000';
const LAST = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

const SINCE = 'round(extract(epoch FROM since)::float8 * 1000::float8)';

/** The rows of a Mailroom in PostgreSQL. Its outbox has no shards: its events are read as those of shard 0. */
export function postgresRows(database: Sql): StoredRows {
  const statements = statementsOf(database);
  return {
    outbox: outboxRows(statements),
    inbox: inboxRows(statements),
    deadLetters: deadLetterRows(statements),
    operations: {
      between: ({ since, until }) =>
        statements.list(
          OPERATION,
          'WHERE o.at >= $1::timestamptz AND o.at <= $2::timestamptz ORDER BY o.at, o.token LIMIT',
          [timeAt(since), timeAt(until)],
          LIST_MAX,
        ),
    },
    createdAt: async () => {
      const [row] = await statements.read(
        'SELECT round(extract(epoch FROM min(applied_at))::float8 * 1000::float8) AS at FROM mailroom.migration',
        [],
      );
      return Number(row?.at);
    },
  };
}

type Statements = ReturnType<typeof statementsOf>;

function statementsOf(database: Sql) {
  const read = (text: string, values: unknown[]) => readJsonRows(database, text, values);
  const rows = async <R>(columns: ColumnsOf<R>, rest: string, values: unknown[]): Promise<R[]> =>
    (await read(`${columns.select} ${rest}`, values)).flatMap((row) => columns.read(row) ?? []);
  return {
    read,
    rows,
    /** @param rest - ends with `LIMIT` */
    list: async <R>(
      columns: ColumnsOf<R>,
      rest: string,
      values: unknown[],
      max: number,
    ): Promise<PartialList<R>> => {
      const found = await rows(columns, `${rest} $${values.length + 1}::bigint`, [...values, limitOf(max)]);
      return { items: found.slice(0, max), more: found.length > max };
    },
    message: async (consumer: string, eventId: string) => {
      const found = await rows(INBOX, 'WHERE i.consumer = $1::text AND i.event_id = $2::text', [
        consumer,
        eventId,
      ]);
      return found[0];
    },
  };
}

function outboxRows({ rows, list }: Statements): StoredRows['outbox'] {
  return {
    byId: async (eventId) =>
      isEventId(eventId) ? (await rows(OUTBOX, 'WHERE e.event_id = $1::uuid', [eventId]))[0] : undefined,
    byIds: (eventIds, map) =>
      inBatches(eventIds, async (batch) => {
        const found = await rows(OUTBOX, 'WHERE e.event_id = ANY($1::text[]::uuid[])', [batch]);
        const byId = new Map(found.map((event) => [eventIdInSortKey(event.SK), event]));
        return batch.map((eventId) => map(eventId, byId.get(eventId)));
      }),
    inMinute: (minute, shard, choice, map) => pagesOfMinute(rows, minute, shard, choice, map),
    pending: async (_sweep, now) => {
      // A producer's clock may be ahead; a scheduled event has the id of its due time.
      const until = idAt(now + MINUTE_MS, LAST);
      const { items, more } = await list(
        OUTBOX,
        'WHERE q.event_id <= $1::uuid ORDER BY q.event_id LIMIT',
        [until],
        LIST_MAX,
      );
      const due = items.filter((event) => !isNotDue(event, now));
      return { items: due.map((event) => ({ ...event, envelope: '' })), more };
    },
  };
}

function inboxRows({ read, rows, list, message }: Statements): StoredRows['inbox'] {
  return {
    byEvent: async (consumer, eventId) => (await message(consumer, eventId))?.row,
    byEvents: (messages, map) =>
      inBatches(messages, async (batch) => {
        const found = await rows(
          INBOX,
          'JOIN unnest($1::text[], $2::text[]) AS wanted (consumer, event_id) USING (consumer, event_id)',
          [batch.map(({ consumer }) => consumer), batch.map(({ eventId }) => eventId)],
        );
        const byKey = new Map(found.map(({ row, ...key }) => [keyText(key), row]));
        return batch.map((one) => map(one, byKey.get(keyText(one))));
      }),
    history: async (consumer) => {
      const retentions = await read(
        `SELECT days, ${SINCE} AS since FROM mailroom.inbox_retention WHERE consumer = $1::text ORDER BY since`,
        [consumer],
      );
      const changedAt = retentions.at(-1)?.since;
      if (changedAt === undefined) return undefined;
      return asRow<InboxHistory>({ ...inboxHistoryKey(consumer), schema: SCHEMA, retentions, changedAt });
    },
    hinted: async (consumer, max) => {
      const { items, more } = await list(
        INBOX,
        `WHERE i.consumer = $1::text AND i.status IN ('FAILED', 'PROCESSING') ORDER BY i.event_id LIMIT`,
        [consumer],
        max,
      );
      return {
        items: items.map(({ eventId, changedAt: failedAt, row }) => ({ eventId, failedAt, row })),
        more,
      };
    },
    failedAt: async (consumer, eventId) => (await message(consumer, eventId))?.changedAt,
    idsFrom: async (consumer, prefix, max) => {
      const found = await read(
        `SELECT i.event_id AS id FROM mailroom.inbox i
          WHERE i.consumer = $1::text AND i.status IN ('REJECTED', 'FAILED', 'PROCESSING')
            AND starts_with(i.event_id, $2::text) ORDER BY i.event_id LIMIT $3::bigint`,
        [consumer, prefix, max],
      );
      return found.map(({ id }) => String(id));
    },
  };
}

function deadLetterRows({ list, message }: Statements): StoredRows['deadLetters'] {
  return {
    dead: (_shards, max) => list(DEAD, 'ORDER BY d.event_id LIMIT', [], max),
    rejected: (consumer, max) =>
      list(
        REJECTED,
        `WHERE i.consumer = $1::text AND i.status = 'REJECTED' ORDER BY i.event_id LIMIT`,
        [consumer],
        max,
      ),
    isRejected: async (consumer, eventId) =>
      readable((await message(consumer, eventId))?.row)?.status === 'REJECTED',
  };
}

async function* pagesOfMinute<T>(
  rows: Statements['rows'],
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
  const bounds = [idAt(startsAt, FIRST), idAt(startsAt + MINUTE_MS - 1, LAST)];
  const prefixed = [completed(idPrefix, FIRST), completed(idPrefix, LAST)];
  for (let from = completed(after, FIRST), more = true; more; ) {
    const chosen = [type ?? null, source ?? null, containing ?? null];
    const found = await rows(OUTBOX, page, [...bounds, ...prefixed, from, ...chosen, limit, status ?? null]);
    from = eventIdInSortKey(found.at(-1)?.SK) ?? LAST;
    more = found.length >= limit;
    yield { items: found.map(map), more };
  }
}

/** One more than wanted shows that there is more. */
function limitOf(max: number): number | null {
  return Number.isFinite(max) ? max + 1 : null;
}

function timeAt(time: number): string {
  return new Date(time).toISOString();
}

function keyText({ consumer, eventId }: { readonly consumer: string; readonly eventId: string }): string {
  return JSON.stringify([consumer, eventId]);
}

/** The first or the last id of a time. */
function idAt(time: number, bound: string): string {
  const hex = Math.max(0, Math.floor(time)).toString(16).padStart(12, '0');
  return completed(`${hex.slice(0, 8)}-${hex.slice(8)}`, bound);
}

/** The first or the last id that begins with a text. */
function completed(prefix: string, bound: string): string {
  return prefix + bound.slice(prefix.length);
}
