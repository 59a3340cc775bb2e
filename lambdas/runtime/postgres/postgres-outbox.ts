import { type Clock, systemClock } from '../base/clock.ts';
import { requireGiven } from '../base/given-names.ts';
import type { Envelope, EventDraft } from '../events/event.ts';
import { sendSpan } from '../observe/message-spans.ts';
import { ownTelemetry, type Telemetry } from '../observe/telemetry.ts';
import { safeTelemetry } from '../observe/telemetry-wrappers.ts';
import { createTracer, inSpan } from '../observe/tracer.ts';
import { refuseOtherRelay, refuseUnpublishable } from '../outbox/captured-event.ts';
import { refuseReserved } from '../outbox/event-draft.ts';
import { type CausingEvent, envelopeOf, type MintedEvent, mintEvent } from '../outbox/outbox-entry.ts';
import { cancelled } from '../outbox/outbox-transitions.ts';
import type { DatabaseProducerConfig } from '../relay/database-config.ts';
import { backoffMs } from '../store/backoff.ts';
import { eventIdTime, mintEventId, type RandomBytes, systemRandomBytes } from '../store/event-id.ts';
import { type SentCommit, wasCommitted } from '../store/postgres/commit-outcome.ts';
import { storable, transitionOf } from '../store/postgres/outbox-writes.ts';
import { type Database, type Sql, sqlState } from '../store/postgres/sql.ts';
import { readOneRow, readRows } from '../store/postgres/sql-rows.ts';
import { WAKE } from './wake-listener.ts';

/** Writes events in transactions of PostgreSQL; created by {@link createPostgresOutbox}. */
export interface PostgresOutbox<Tx> {
  /**
   * Writes events in a transaction of yours: they are published if and only if it commits. It is one statement. If it throws one of the
   * codes below, nothing was sent; any other error is the database's, and your transaction must be rolled back.
   *
   * @param cause - the event being handled, whose correlation id and trace the new events inherit @default none
   * @returns the envelopes that will be published, in the order of `events`
   * @throws `NOT_DECLARED`, `INVALID_PAYLOAD`, `INVALID_EVENT`, `EVENT_TOO_LARGE`, `TOO_MANY_HOPS`
   *
   * @example
   * ```ts
   * await db.transaction(async (tx) => {
   *   await tx.insert(orders).values(order);
   *   await outbox.write(tx, [OrderPlaced.create({ aggregateId: order.id, data: { totalCents: 4200 } })]);
   * });
   * ```
   */
  write(tx: Tx, events: readonly EventDraft[], cause?: CausingEvent): Promise<readonly Envelope[]>;

  /**
   * Runs a function in a READ COMMITTED transaction, writes the events that it returns, and commits. It runs the function again, at most
   * 5 times in total, after a deadlock, a serialization failure, a lock timeout or on a read-only server, always in a new transaction: let it change nothing
   * else. If the answer to COMMIT is lost, it looks for a row of the transaction.
   *
   * @returns the envelopes that will be published: the transaction was committed
   * @throws `COMMIT_UNKNOWN` if the database does not tell whether it was committed. After any other error, nothing was written
   *
   * @example
   * ```ts
   * await outbox.commit(async (tx) => {
   *   await tx.query('INSERT INTO orders (id, total_cents) VALUES ($1, $2)', [id, 4200]);
   *   return [OrderPlaced.create({ aggregateId: id, data: { totalCents: 4200 } })];
   * });
   * ```
   */
  commit(run: (tx: Tx) => Promise<readonly EventDraft[]>): Promise<readonly Envelope[]>;

  /**
   * Cancels a scheduled event of this service in a transaction of yours: if that commits, the event is never published.
   *
   * @returns `cancelled`, now or before; `too-late`: a relay has taken it, it was published, it is not scheduled, or it belongs to another
   * service; also if it has no row, because the transaction that writes it has not committed
   * @throws `BAD_EVENT_ID` if the text is not an event id
   *
   * @example
   * ```ts
   * await db.transaction(async (tx) => {
   *   await tx.update(orders).set({ paid: true }).where(eq(orders.id, id));
   *   await outbox.cancel(tx, order.expiryId);
   * });
   * ```
   */
  cancel(tx: Tx, eventId: string): Promise<'cancelled' | 'too-late'>;
}

/** Dependencies of {@link createPostgresOutbox}. */
export interface PostgresOutboxDeps<Tx> {
  /** From `readPostgresProducerConfig(process.env)`. */
  readonly config: DatabaseProducerConfig;
  /** Your driver or ORM. */
  readonly database: Database<Tx>;
  /**
   * `cdc` leaves the events to a connector that reads the database's log (docs/postgres.md): they have no place in the queue, no relay publishes them,
   * and none can be scheduled. @default a relay publishes them
   */
  readonly relay?: 'cdc' | undefined;
  /** @default the machine's clock */
  readonly clock?: Clock | undefined;
  /** @default the machine's random source */
  readonly random?: RandomBytes | undefined;
  /** If you pass one, you flush it. @default Powertools in a Lambda function, flushed after each commit; otherwise none */
  readonly telemetry?: Telemetry | undefined;
}

/** A serialization failure, a deadlock, a lock timeout, and a server that is read-only after a failover: the next connection is another one. */
const REPEATED = /^(40001|40P01|55P03|25006)$/;

/** Tries of a transaction that the database rolled back, and that may succeed now. */
const TRIES = 5;

/** The number of an event in its aggregate. A scheduled or captured event has none. */
const ORDINAL =
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
  requireGiven('createPostgresOutbox', deps, 'config', 'database');
  const { config, database, relay, clock = systemClock, random = systemRandomBytes } = deps;
  refuseReserved(config.service);
  refuseOtherRelay(relay);
  const own =
    deps.telemetry === undefined && process.env.AWS_LAMBDA_FUNCTION_NAME !== undefined
      ? ownTelemetry(config, {})
      : undefined;
  const given = deps.telemetry ?? own;
  const telemetry = given && safeTelemetry(given);
  const tracer = createTracer();
  // A database has no shards: the last byte of the id is random.
  const context = { config: { ...config, shards: 256 }, clock, random, tracer };

  const mint = async (events: readonly EventDraft[], cause?: CausingEvent) => {
    const minted: MintedEvent[] = [];
    for (const draft of events) minted.push(await mintEvent(context, draft, cause));
    for (const event of minted) refuseUnpublishable(event, relay);
    return minted;
  };

  /** Writes the rows that prove the commit. @returns `undefined` if there is nothing to prove */
  const prove = async (sql: Sql, minted: readonly MintedEvent[]): Promise<SentCommit | undefined> => {
    const [first] = minted;
    if (first !== undefined) {
      const xid = await insert(sql, minted, relay);
      return { xid, proof: PROOF_BY_EVENT, values: [first.eventId] };
    }
    const id = mintEventId(clock.now(), 256, random);
    const [written] = await readRows(sql, INSERT_COMMIT, [id], { xid: 'text' });
    return written && { xid: written.xid, proof: PROOF_BY_COMMIT, values: [id] };
  };

  const commit: PostgresOutbox<Tx>['commit'] = async (run) => {
    for (let attempt = 1; ; attempt += 1) {
      let sent: SentCommit | undefined;
      let envelopes: readonly Envelope[] = [];
      try {
        await database.transaction(async (tx) => {
          const minted = await mint(await run(tx));
          const written = await prove(database.in(tx), minted);
          envelopes = minted.map(envelopeOf);
          sent = written;
        });
        return envelopes;
      } catch (error) {
        // Otherwise no COMMIT was sent, or nothing was written.
        if (sent !== undefined && (await wasCommitted({ database, clock, random }, sent, error)))
          return envelopes;
        if (!REPEATED.test(sqlState(error) ?? '') || attempt >= TRIES) throw error;
        await clock.sleep(backoffMs(attempt, 25, 400, random));
      }
    }
  };

  return {
    write: async (tx, events, cause) => {
      if (events.length === 0) return [];
      const minted = await mint(events, cause);
      await insert(database.in(tx), minted, relay);
      return minted.map(envelopeOf);
    },
    cancel: async (tx, eventId) => {
      const sql = database.in(tx);
      const now = clock.now();
      const cancellation = cancelled(eventId, config.service, now);
      // A claim skips the locked row, and finds none after the commit.
      const of = [eventId, eventIdTime(eventId), cancellation.source];
      const gone = await readRows(sql, ...transitionOf(now, of, cancellation), {});
      if (gone.length > 0) return 'cancelled';
      const before = await readRows(sql, CANCELLED, [eventId, config.service], {});
      return before.length > 0 ? 'cancelled' : 'too-late';
    },
    commit: (run) =>
      inSpan(tracer, sendSpan(config, []), async () => {
        const envelopes = await commit(run);
        telemetry?.count('EventsCommitted', envelopes.length);
        own?.flush();
        return envelopes;
      }),
  };
}

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
