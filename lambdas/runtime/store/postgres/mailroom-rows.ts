import type { MailroomRows } from '../../operations/mailroom-rows.ts';
import { databaseMailroomRows, type MailroomReads } from '../sql/mailroom-rows.ts';
import { OUTBOX, STATUS } from './columns.ts';
import { INBOX, readColumns } from './message-columns.ts';
import type { Sql } from './sql.ts';
import { readJsonRows } from './sql-rows.ts';

const SINCE = 'round(extract(epoch FROM since)::float8 * 1000::float8)';

const RANGE = `WHERE e.event_id >= $1::uuid AND e.event_id <= $2::uuid AND e.event_id > $3::uuid
    AND ($4::text IS NULL OR e.type = $4::text) AND ($5::text IS NULL OR e.source = $5::text)
    AND ($6::text IS NULL OR position($6::text IN e.envelope) > 0) AND ($7::text IS NULL OR ${STATUS} = $7::text)
    ORDER BY e.event_id LIMIT $8::int`;

/**
 * The outbox and the inboxes of a Mailroom in PostgreSQL.
 *
 * @param database - a view of every row: what row-level security hides would count as absent
 */
export function postgresMailroomRows(database: Sql): MailroomRows {
  return databaseMailroomRows(postgresReads(database));
}

/** The reads of {@link postgresMailroomRows}. */
export function postgresReads(database: Sql): MailroomReads {
  return {
    events: (eventIds) =>
      readColumns(database, OUTBOX, 'WHERE e.event_id = ANY($1::text[]::uuid[])', [eventIds]),
    eventsIn: ({ from, to, after, choice: { type, source, containing, status }, limit }) => {
      const chosen = [type, source, containing, status].map((value) => value ?? null);
      return readColumns(database, OUTBOX, RANGE, [from, to, after, ...chosen, limit]);
    },
    messages: (keys) =>
      readColumns(
        database,
        INBOX,
        'JOIN unnest($1::text[], $2::text[]) AS wanted (consumer, event_id) USING (consumer, event_id)',
        [keys.map(({ consumer }) => consumer), keys.map(({ eventId }) => eventId)],
      ),
    retentions: async (consumer) => {
      const found = await readJsonRows(
        database,
        `SELECT days, ${SINCE} AS since FROM mailroom.inbox_retention WHERE consumer = $1::text ORDER BY since`,
        [consumer],
      );
      return found.map(({ days, since }) => ({ days: Number(days), since: Number(since) }));
    },
  };
}
