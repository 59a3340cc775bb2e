import { MINUTE_MS } from '../../lambdas/runtime/base/units.ts';
import { DEAD, OPERATION, OUTBOX, REJECTED } from '../../lambdas/runtime/store/postgres/columns.ts';
import { readLastSequence } from '../../lambdas/runtime/store/postgres/last-sequence.ts';
import { lastIdAt, postgresMailroomRows } from '../../lambdas/runtime/store/postgres/mailroom-rows.ts';
import {
  type ColumnsOf,
  INBOX,
  messageRow,
  readColumns,
} from '../../lambdas/runtime/store/postgres/message-columns.ts';
import type { Sql } from '../../lambdas/runtime/store/postgres/sql.ts';
import { readJsonRows } from '../../lambdas/runtime/store/postgres/sql-rows.ts';
import { readable } from '../../lambdas/runtime/store/stored-rows.ts';
import { isNotDue, type PartialList } from './rows-reader.ts';
import type { StoredRows } from './stored-rows.ts';

/** The most rows of a list without another limit. */
const LIST_MAX = 10_000;

/** The rows of a Mailroom in PostgreSQL. */
export function postgresRows(database: Sql): StoredRows {
  const { outbox, inbox } = postgresMailroomRows(database);
  const list = listsOf(database);

  return {
    outbox: {
      ...outbox,
      pending: async (_sweep, now) => {
        // A producer's clock may be ahead; a scheduled event has the id of its due time.
        const until = lastIdAt(now + MINUTE_MS);
        const { items, more } = await list(
          OUTBOX,
          'WHERE q.event_id <= $1::uuid ORDER BY q.event_id LIMIT',
          [until],
          LIST_MAX,
        );
        const due = items.filter((event) => !isNotDue(event, now));
        return { items: due.map((event) => ({ ...event, envelope: '' })), more };
      },
    },
    inbox: {
      ...inbox,
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
      lastSequence: (key) => readLastSequence(database, key),
      failedAt: async (consumer, eventId) => (await messageRow(database, consumer, eventId))?.changedAt,
      idsFrom: async (consumer, prefix, max) => {
        const found = await readJsonRows(
          database,
          `SELECT i.event_id AS id FROM mailroom.inbox i
            WHERE i.consumer = $1::text AND i.status IN ('REJECTED', 'FAILED', 'PROCESSING')
              AND starts_with(i.event_id, $2::text) ORDER BY i.event_id LIMIT $3::bigint`,
          [consumer, prefix, max],
        );
        return found.map(({ id }) => String(id));
      },
    },
    deadLetters: {
      dead: (_shards, max) => list(DEAD, 'ORDER BY d.event_id LIMIT', [], max),
      rejected: (consumer, max) =>
        list(
          REJECTED,
          `WHERE i.consumer = $1::text AND i.status = 'REJECTED' ORDER BY i.event_id LIMIT`,
          [consumer],
          max,
        ),
      isRejected: async (consumer, eventId) =>
        readable((await messageRow(database, consumer, eventId))?.row)?.status === 'REJECTED',
    },
    operations: {
      between: ({ since, until }) =>
        list(
          OPERATION,
          'WHERE o.at >= $1::timestamptz AND o.at <= $2::timestamptz ORDER BY o.at, o.token LIMIT',
          [timeAt(since), timeAt(until)],
          LIST_MAX,
        ),
    },
    createdAt: async () => {
      const [row] = await readJsonRows(
        database,
        'SELECT round(extract(epoch FROM min(applied_at))::float8 * 1000::float8) AS at FROM mailroom.migration',
      );
      return Number(row?.at);
    },
  };
}

function listsOf(database: Sql) {
  /** @param rest - ends with `LIMIT` */
  return async <R>(
    columns: ColumnsOf<R>,
    rest: string,
    values: readonly unknown[],
    max: number,
  ): Promise<PartialList<R>> => {
    const limit = `$${values.length + 1}::bigint`;
    const found = await readColumns(database, columns, `${rest} ${limit}`, [...values, limitOf(max)]);
    return { items: found.slice(0, max), more: found.length > max };
  };
}

/** One more than wanted shows that there is more. */
function limitOf(max: number): number | null {
  return Number.isFinite(max) ? max + 1 : null;
}

function timeAt(time: number): string {
  return new Date(time).toISOString();
}
