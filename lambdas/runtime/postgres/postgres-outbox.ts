import type { MintedEvent } from '../outbox/outbox-entry.ts';
import { type SentCommit, wasCommitted } from '../store/postgres/commit-outcome.ts';
import { storable, transitionOf } from '../store/postgres/outbox-writes.ts';
import { type Sql, sqlState } from '../store/postgres/sql.ts';
import { readOneRow, readRows } from '../store/postgres/sql-rows.ts';
import {
  type DatabaseOutbox,
  type DatabaseOutboxDeps,
  databaseOutbox,
  type OutboxStatements,
} from '../store/sql/database-outbox.ts';
import { WAKE } from './wake-listener.ts';

/** Writes events in transactions of PostgreSQL; created by {@link createPostgresOutbox}. Each write is one statement. */
export type PostgresOutbox<Tx> = DatabaseOutbox<Tx>;

/** Dependencies of {@link createPostgresOutbox}. */
export type PostgresOutboxDeps<Tx> = DatabaseOutboxDeps<Tx>;

/** A serialization failure, a deadlock, a lock timeout, and a server that is read-only after a failover: the next connection is another one. */
const REPEATED = /^(40001|40P01|55P03|25006)$/;

/** The number of an event in its aggregate. A scheduled or captured event has none. */
export const ORDINAL =
  "CASE WHEN due_at IS NULL AND published_by IS NULL THEN pg_catalog.nextval('mailroom.event_ordinal'::regclass) END";

/** Events. As JSON, because drivers disagree about arrays that contain null. */
const WRITTEN = `WITH minted AS MATERIALIZED (
  SELECT * FROM json_to_recordset($1::json) AS m(event_id uuid, source text, type text, trace_id text, aggregate_type text, aggregate_id text, envelope text, due_at double precision, published_by text)
), written AS (
  INSERT INTO mailroom.event (event_id, source, type, trace_id, aggregate_type, aggregate_id, envelope, published_by, ordinal)
  SELECT event_id, source, type, trace_id, aggregate_type, aggregate_id, envelope, published_by, ${ORDINAL} FROM minted
)`;

/** Events and their places in the queue. */
const INSERT = `${WRITTEN}, queued AS (
  INSERT INTO mailroom.pending (event_id, due_at)
  SELECT event_id, coalesce(to_timestamp(due_at / 1000::float8), clock_timestamp()) FROM minted
), ${WAKE}
SELECT pg_current_xact_id()::text AS xid, (SELECT count(*) FROM woken)::text AS woken`;

/** Events that a connector reads from the log: no relay has to find them. */
const INSERT_CAPTURED = `${WRITTEN}
SELECT pg_current_xact_id()::text AS xid`;

/** The ids of events are random. Their rows are deleted a day after they were published, or later. */
const PROOF_BY_EVENT = 'EXISTS (SELECT FROM mailroom.event WHERE event_id = $2::uuid)';

/** A transaction without events has its own row, unless it has written nothing. */
const INSERT_COMMIT = `WITH written AS (
  INSERT INTO mailroom.commit (commit_id) SELECT $1::uuid WHERE pg_current_xact_id_if_assigned() IS NOT NULL RETURNING commit_id
)
SELECT pg_current_xact_id()::text AS xid FROM written`;

const PROOF_BY_COMMIT = 'EXISTS (SELECT FROM mailroom.commit WHERE commit_id = $2::uuid)';

/** Its own statement: the one before may have waited for another cancellation, which its snapshot does not contain. */
const CANCELLED = `SELECT c.event_id FROM mailroom.cancelled c JOIN mailroom.event e USING (event_id)
  WHERE c.event_id = $1::uuid AND e.source = $2::text`;

/**
 * Creates the outbox of a service that keeps its data in PostgreSQL. Run {@link migratePostgres} first.
 *
 * @throws `BAD_CONFIG` if the service's name begins with `aws.`, which EventBridge reserves for AWS; `BAD_ARGUMENT` if `relay` is unknown
 *
 * @example
 * ```ts
 * const config = readPostgresProducerConfig(process.env);
 * const database = nodePostgres(postgresPool(readPostgresSettings(process.env)));
 * export const outbox = createPostgresOutbox({ config, database });
 * ```
 */
export function createPostgresOutbox<Tx>(deps: PostgresOutboxDeps<Tx>): PostgresOutbox<Tx> {
  return databaseOutbox(statementsOf(deps?.relay), deps);
}

const statementsOf = (relay: 'cdc' | undefined): OutboxStatements<SentCommit> => ({
  factory: 'createPostgresOutbox',
  insert: async (sql, minted) => {
    const xid = await insert(sql, minted, relay);
    return { xid, proof: PROOF_BY_EVENT, values: [minted[0].eventId] };
  },
  mark: async (sql, id) => {
    const [written] = await readRows(sql, INSERT_COMMIT, [id], { xid: 'text' });
    return written && { xid: written.xid, proof: PROOF_BY_COMMIT, values: [id] };
  },
  wasCommitted,
  isRepeatable: (error) => REPEATED.test(sqlState(error) ?? ''),
  cancel: async (sql, { eventId, dueAt, now }, cancellation) => {
    // A claim skips the locked row, and finds none after the commit.
    const of = [eventId, dueAt, cancellation.source];
    if ((await readRows(sql, ...transitionOf(now, of, cancellation), {})).length > 0) return true;
    return (await readRows(sql, CANCELLED, [eventId, cancellation.source], {})).length > 0;
  },
});

/** @returns the id of the transaction */
async function insert(sql: Sql, minted: readonly MintedEvent[], relay: 'cdc' | undefined): Promise<string> {
  const events = minted.map(({ eventId, dueAt, aggregate, entry }) => ({
    event_id: eventId,
    source: entry.source,
    type: entry.detailType,
    trace_id: entry.traceHeader,
    // Only keys: the envelope has both as they are.
    aggregate_type: storable(aggregate.type),
    aggregate_id: storable(aggregate.id),
    envelope: entry.detail,
    due_at: dueAt,
    published_by: relay,
  }));
  const text = relay === 'cdc' ? INSERT_CAPTURED : INSERT;
  return (await readOneRow(sql, text, [JSON.stringify(events)], { xid: 'text' })).xid;
}
