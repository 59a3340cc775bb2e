import { MINUTE_MS } from '../../lambdas/runtime/base/units.ts';
import type { Sql } from '../../lambdas/runtime/postgres/sql.ts';
import { readJsonRows } from '../../lambdas/runtime/postgres/sql-rows.ts';
import { EVENT_PREFIX } from '../../lambdas/runtime/store/keys.ts';
import { outboxPartOf } from '../../lambdas/runtime/store/outbox-partition.ts';
import { SCHEMA } from '../../lambdas/runtime/store/row-schema.ts';
import type { Item } from '../../lambdas/runtime/store/table.ts';
import { DEAD, OPERATION, OUTBOX, REJECTED, WAITING } from './postgres-items.ts';

/** The most items of a page. */
export const PAGE_MAX = 1_000;

/** The first and the last event id that begin with a text. */
const FIRST = '00000000-0000-0000-0000-000000000000';
const LAST = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** The minutes in which waiting events were created or are due, up to the present one. */
const UNSETTLED = `SELECT DISTINCT (('x0000' || left(replace(event_id::text, '-'::text, ''::text), 12))::bit(64)::bigint / 60000)::float8 AS minute
  FROM mailroom.pending WHERE event_id <= $1::uuid ORDER BY minute LIMIT ${10 * PAGE_MAX}`;

/** The database's time, epoch milliseconds. */
const NOW = 'round(extract(epoch FROM clock_timestamp())::float8 * 1000::float8)';

/** A part of a partition. */
export interface ItemRange {
  readonly skPrefix: string;
  readonly after: string;
  readonly limit: number;
  readonly where: Item;
  readonly containing: Readonly<Record<string, string>>;
}

/** Reads the tables of a Mailroom in PostgreSQL as stored items. */
export function postgresReader(database: Sql) {
  const read = (text: string, values: unknown[]) => readJsonRows(database, text, values);
  const items = async (
    { select, item }: { readonly select: string; readonly item: (row: Item) => Item },
    rest: string,
    values: unknown[],
  ): Promise<Item[]> => (await read(`${select} ${rest}`, values)).map(item);

  const partition = async (pk: string, part: ItemRange): Promise<Item[]> => {
    const { skPrefix, after, limit } = part;
    const [kind, name = ''] = [pk.slice(0, pk.indexOf('#')), pk.slice(pk.indexOf('#') + 1)];
    const inOrder = 'ORDER BY i.event_id LIMIT $4::int';
    const ofConsumer = [name, after, `${skPrefix}%`, limit];
    switch (kind) {
      case 'OUTBOX':
        return outboxPage(pk, part);
      case 'DEAD':
        return items(
          DEAD,
          'WHERE d.event_id > $1::uuid AND d.event_id BETWEEN $2::uuid AND $3::uuid ORDER BY d.event_id LIMIT $4::int',
          [after || FIRST, completed(skPrefix, FIRST), completed(skPrefix, LAST), limit],
        );
      case 'SWEEP': {
        const [now] = await read(`SELECT ${NOW} AS now`, []);
        const minutes = await read(UNSETTLED, [idAt(Number(now?.now), LAST)]);
        const texts = minutes.map(({ minute }) =>
          new Date(Number(minute) * MINUTE_MS).toISOString().slice(0, 16),
        );
        return texts.filter((SK) => SK > after).map((SK) => ({ PK: pk, SK, schema: SCHEMA, token: SK }));
      }
      case 'REJECTED':
        return items(
          REJECTED,
          `WHERE i.consumer = $1::text AND i.status = 'REJECTED' AND i.event_id > $2::text AND i.event_id LIKE $3::text ${inOrder}`,
          ofConsumer,
        );
      case 'FAILED':
        return items(
          WAITING,
          `WHERE i.consumer = $1::text AND i.status IN ('FAILED', 'PROCESSING') AND i.event_id > $2::text AND i.event_id LIKE $3::text ${inOrder}`,
          ofConsumer,
        );
      case 'OPERATIONS':
        return items(
          OPERATION,
          "WHERE o.at >= $1::timestamptz AND o.at < $1::timestamptz + interval '1 month' AND (o.at, o.token) > ($2::timestamptz, $3::text) ORDER BY o.at, o.token LIMIT $4::int",
          [`${name}-01T00:00:00Z`, after.split('#')[0] || '-infinity', after.split('#')[1] ?? '', limit],
        );
      default:
        return [];
    }
  };

  const outboxPage = async (pk: string, { skPrefix, after, limit, where, containing }: ItemRange) => {
    const minute = outboxPartOf(pk)?.startsAt;
    if (minute === undefined) return [];
    const prefix = skPrefix.slice(EVENT_PREFIX.length);
    const cursor = after.slice(EVENT_PREFIX.length);
    const { status, type } = where;
    return items(
      OUTBOX,
      `WHERE e.event_id >= $1::uuid AND e.event_id <= $2::uuid AND e.event_id >= $3::uuid AND e.event_id <= $4::uuid AND e.event_id > $5::uuid
        AND ($6::text IS NULL OR e.type = $6::text) AND ($7::text IS NULL OR position($7::text IN e.envelope) > 0)
        ${Object.hasOwn(OUTBOX.where, String(status)) ? `AND ${OUTBOX.where[status as keyof typeof OUTBOX.where]}` : ''}
        ORDER BY e.event_id LIMIT $8::int`,
      [
        idAt(minute, FIRST),
        idAt(minute + MINUTE_MS - 1, LAST),
        completed(prefix, FIRST),
        completed(prefix, LAST),
        completed(cursor, FIRST),
        type ?? null,
        containing.envelope ?? null,
        limit,
      ],
    );
  };

  return { read, items, partition };
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
