import type { Sql } from '../../lambdas/runtime/postgres/sql.ts';
import { EVENT_PREFIX, INBOX_PREFIX } from '../../lambdas/runtime/store/keys.ts';
import { outboxPartOf } from '../../lambdas/runtime/store/outbox-partition.ts';
import { SCHEMA } from '../../lambdas/runtime/store/row-schema.ts';
import type { Item, Key, Page, Query, Table } from '../../lambdas/runtime/store/table.ts';
import { INBOX, OUTBOX } from './postgres-items.ts';
import { PAGE_MAX, postgresReader } from './postgres-reader.ts';

/** The rows of a Mailroom in PostgreSQL, as {@link bothTables} reads them beside those of its table. */
export type PostgresTable = Pick<Table, 'getEach' | 'query' | 'createdAt'>;

/**
 * The reads of the table port on the tables of a Mailroom in PostgreSQL: its rows have the keys and the shape of stored items, so that
 * every report reads them. All events are in shard 0: a minute of it is a range of event ids.
 */
export function postgresTable(database: Sql): PostgresTable {
  const { read, items, partition } = postgresReader(database);

  const getEach = async (keys: readonly Key[]): Promise<(Item | undefined)[]> => {
    const events = keys.flatMap((key) => eventOf(key) ?? []);
    const messages = keys.flatMap((key) => messageOf(key) ?? []);
    const [outbox, inbox, others] = await Promise.all([
      events.length === 0 ? [] : items(OUTBOX, 'WHERE e.event_id = ANY($1::text[]::uuid[])', [events]),
      messages.length === 0
        ? []
        : items(
            INBOX,
            'JOIN unnest($1::text[], $2::text[]) AS wanted (consumer, event_id) USING (consumer, event_id)',
            [messages.map(({ consumer }) => consumer), messages.map(({ eventId }) => eventId)],
          ),
      Promise.all(keys.map((key) => otherItem(key))),
    ]);
    const found = new Map(
      [...outbox, ...inbox, ...others.flatMap((item) => item ?? [])].map((item) => [keyText(item), item]),
    );
    return keys.map((key) => found.get(keyText(key)));
  };

  /** The history of an inbox, or a pointer, by its key. */
  const otherItem = async ({ PK, SK }: Key): Promise<Item | undefined> => {
    const consumer = historyOf(PK);
    if (consumer !== undefined) {
      const rows = await read(
        `SELECT days, round(extract(epoch FROM since)::float8 * 1000::float8) AS since FROM mailroom.inbox_retention WHERE consumer = $1::text ORDER BY since`,
        [consumer],
      );
      const changedAt = rows.at(-1)?.since;
      return changedAt === undefined ? undefined : { PK, SK, schema: SCHEMA, retentions: rows, changedAt };
    }
    if (!/^(DEAD|REJECTED|FAILED)#/.test(PK)) return undefined;
    const found = await partition(PK, { skPrefix: SK, after: '', limit: 1, where: {}, containing: {} });
    return found.find((item) => item.SK === SK);
  };

  const page = async ({ pk, skPrefix = '', where = {}, containing = {}, ...query }: Query): Promise<Page> => {
    // One shard has all: that of an id is only a part of its key.
    if (/^(OUTBOX|DEAD|SWEEP)#/.test(pk) && !pk.endsWith('#00')) return { items: [] };
    const limit = Math.min(query.limit ?? PAGE_MAX, PAGE_MAX);
    const after = String(query.cursor?.SK ?? '');
    const found = await partition(pk, { skPrefix, after, limit, where, containing });
    const last = found.at(-1);
    return {
      items: found.filter((item) => matches(item, where, containing)),
      ...(found.length >= limit && last !== undefined && { cursor: { PK: pk, SK: last.SK } }),
    };
  };

  return {
    getEach,
    query: page,
    createdAt: async () => {
      const [row] = await read(
        'SELECT round(extract(epoch FROM min(applied_at))::float8 * 1000::float8) AS at FROM mailroom.migration',
        [],
      );
      return Number(row?.at);
    },
  };
}

function eventOf({ PK, SK }: Key): string | undefined {
  return outboxPartOf(PK) === undefined ? undefined : SK.slice(EVENT_PREFIX.length);
}

function messageOf({ PK, SK }: Key): { readonly consumer: string; readonly eventId: string } | undefined {
  if (!PK.startsWith(INBOX_PREFIX) || SK !== 'MESSAGE') return undefined;
  const [consumer = '', ...eventId] = PK.slice(INBOX_PREFIX.length).split('#');
  return { consumer, eventId: eventId.join('#') };
}

/** The consumer whose inbox history has this partition key. */
function historyOf(PK: string): string | undefined {
  return /^INBOX#([^#]+)#HISTORY$/.exec(PK)?.[1];
}

function keyText({ PK, SK }: Item): string {
  return JSON.stringify([PK, SK]);
}

function matches(item: Item, where: Item, containing: Readonly<Record<string, string>>): boolean {
  const equal = Object.entries(where).every(([attribute, value]) => item[attribute] === value);
  const contains = Object.entries(containing).every(([attribute, text]) => {
    const value: unknown = item[attribute];
    return typeof value !== 'string' || value.includes(text);
  });
  return equal && contains;
}
