import { type Clock, systemClock } from '../../base/clock.ts';
import { requireGiven } from '../../base/given-names.ts';
import type { Envelope, EventDraft } from '../../events/event.ts';
import { sendSpan } from '../../observe/message-spans.ts';
import { ownTelemetry, type Telemetry } from '../../observe/telemetry.ts';
import { safeTelemetry } from '../../observe/telemetry-wrappers.ts';
import { createTracer, inSpan } from '../../observe/tracer.ts';
import { refuseOtherRelay, refuseUnpublishable } from '../../outbox/captured-event.ts';
import { refuseReserved } from '../../outbox/event-draft.ts';
import { type CausingEvent, envelopeOf, type MintedEvent, mintEvent } from '../../outbox/outbox-entry.ts';
import { cancelled, type EventTransition } from '../../outbox/outbox-transitions.ts';
import type { DatabaseProducerConfig } from '../../relay/database-config.ts';
import { backoffMs } from '../backoff.ts';
import { eventIdTime, mintEventId, type RandomBytes, systemRandomBytes } from '../event-id.ts';
import type { Database, Sql } from './database.ts';

/** Writes events in transactions of a database; created by {@link createPostgresOutbox} or {@link createMysqlOutbox}. */
export interface DatabaseOutbox<Tx> {
  /**
   * Writes events in a transaction of yours: they are published if and only if it commits. If it throws one of the codes below, nothing was
   * sent; any other error is the database's, and your transaction must be rolled back.
   *
   * @param cause - the event being handled, whose correlation id and trace the new events inherit @default none
   * @returns the envelopes that will be published, in the order of `events`
   * @throws `NOT_DECLARED`, `INVALID_PAYLOAD`, `INVALID_EVENT`, `EVENT_TOO_LARGE`, `TOO_MANY_HOPS`; `NO_TRANSACTION` if the connection is in none, on MySQL
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
   * @throws `COMMIT_UNKNOWN` if the database does not tell whether it was committed; `TRANSACTION_ENDED` if the function ended the transaction on MySQL,
   * also if it then threw (`cause`): what that has committed stays. After any other error, nothing was written, unless the function ended the transaction
   * itself: on PostgreSQL, or on MySQL before it threw the error of a deadlock, which hides that
   *
   * @example
   * ```ts
   * await outbox.commit(async (tx) => {
   *   await tx.insert(orders).values(order);
   *   return [OrderPlaced.create({ aggregateId: order.id, data: { totalCents: 4200 } })];
   * });
   * ```
   */
  commit(run: (tx: Tx) => Promise<readonly EventDraft[]>): Promise<readonly Envelope[]>;

  /**
   * Cancels a scheduled event of this service in a transaction of yours: if that commits, the event is never published.
   *
   * @returns `cancelled`, now or before; `too-late`: a relay has taken it, it was published, it is not scheduled, or it belongs to another
   * service; also if it has no row, because the transaction that writes it has not committed
   * @throws `BAD_EVENT_ID` if the text is not an event id; `NO_TRANSACTION` as {@link DatabaseOutbox.write}
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

/** Writes events in a transaction. `createPostgresOutbox` and `createMysqlOutbox` make one. */
export interface DatabaseEvents<Tx> {
  /**
   * Writes events that are published if and only if the transaction commits.
   *
   * @param cause - the event being handled: they inherit its correlation id and trace
   */
  write(tx: Tx, events: readonly EventDraft[], cause?: CausingEvent): Promise<unknown>;
}

/** Dependencies of the outbox of a database. */
export interface DatabaseOutboxDeps<Tx> {
  /** From `readPostgresProducerConfig(process.env)` or `readMysqlProducerConfig(process.env)`. */
  readonly config: DatabaseProducerConfig;
  /** Your driver or ORM. */
  readonly database: Database<Tx>;
  /**
   * `cdc` leaves the events to a connector that reads the database's log (docs/postgres.md, docs/mysql.md): they have no place in the queue, no relay
   * publishes them, and none can be scheduled. @default a relay publishes them
   */
  readonly relay?: 'cdc' | undefined;
  /** @default the machine's clock */
  readonly clock?: Clock | undefined;
  /** @default the machine's random source */
  readonly random?: RandomBytes | undefined;
  /** If you pass one, you flush it. @default Powertools in a Lambda function, flushed after each commit; otherwise none */
  readonly telemetry?: Telemetry | undefined;
}

/** The statements of the outbox of one kind of database. */
export interface OutboxStatements<Proof> {
  /** The name of the factory, for errors. */
  readonly factory: string;
  /** Refuses a connection that is in no transaction. @throws `NO_TRANSACTION` @default each write is one statement */
  requireTransaction?(sql: Sql): Promise<void>;
  /** Runs a write between statements of the caller, whose session it leaves as it was. @default a write changes nothing there */
  betweenOthers?(sql: Sql, write: () => Promise<unknown>): Promise<unknown>;
  /** Runs the function of a commit, and refuses one that ended its transaction, also if it throws. @throws `TRANSACTION_ENDED` @default a later statement fails then */
  inOneTransaction?<T>(sql: Sql, run: () => Promise<T>): Promise<T>;
  /** Writes events and their places in the queue. @returns the proof that their transaction was committed */
  insert(sql: Sql, minted: readonly [MintedEvent, ...MintedEvent[]]): Promise<Proof>;
  /** Writes a row by which a transaction without events is recognized. @param id - new @returns `undefined` if there is nothing to prove */
  mark(sql: Sql, id: string): Promise<Proof | undefined>;
  /** Returns true if a transaction whose COMMIT failed was committed, false if it never will be. @throws `COMMIT_UNKNOWN` */
  wasCommitted(deps: OutcomeDeps, proof: Proof, cause: unknown): Promise<boolean>;
  /** Returns true if the database has rolled a transaction back that may succeed now. */
  isRepeatable(error: unknown): boolean;
  /** Makes a transition of an event that no relay has held. @returns true if the event is in its new state, now or before */
  cancel(
    sql: Sql,
    event: { readonly eventId: string; readonly dueAt: number; readonly now: number },
    cancellation: EventTransition & { readonly source: string },
  ): Promise<boolean>;
}

/** Dependencies of a question about a transaction. */
export interface OutcomeDeps {
  readonly database: Sql;
  readonly clock: Clock;
  readonly random: RandomBytes;
}

/** The last write of each transaction. */
const writes = new WeakMap<object, Promise<unknown>>();

/** Runs the writes of a transaction one after the other: the savepoint of one must not be set in the middle of another. */
function inTurn<T>(tx: unknown, work: () => Promise<T>): Promise<T> {
  const key = Object(tx);
  const end = (writes.get(key) ?? Promise.resolve()).then(work, work);
  writes.set(key, end);
  return end;
}

/** Tries of a transaction that the database rolled back, and that may succeed now. */
const TRIES = 5;

/**
 * Creates the outbox of a service that keeps its data in its own database.
 *
 * @throws `BAD_CONFIG` if the service's name begins with `aws.`, which EventBridge reserves for AWS; `BAD_ARGUMENT` if `relay` is unknown
 */
export function databaseOutbox<Tx, Proof>(
  statements: OutboxStatements<Proof>,
  deps: DatabaseOutboxDeps<Tx>,
): DatabaseOutbox<Tx> {
  requireGiven(statements.factory, deps, 'config', 'database');
  const { config, database, relay, clock = systemClock, random = systemRandomBytes } = deps;
  refuseReserved(config.service);
  refuseOtherRelay(statements.factory, relay);
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

  /** Writes the rows that prove the commit. */
  const prove = (sql: Sql, [first, ...more]: readonly MintedEvent[]) =>
    first === undefined
      ? statements.mark(sql, mintEventId(clock.now(), 256, random))
      : statements.insert(sql, [first, ...more]);

  const commit: DatabaseOutbox<Tx>['commit'] = async (run) => {
    for (let attempt = 1; ; attempt += 1) {
      let sent: Proof | undefined;
      let envelopes: readonly Envelope[] = [];
      try {
        await database.transaction(async (tx) => {
          const sql = database.in(tx);
          const drafts = await (statements.inOneTransaction?.(sql, () => run(tx)) ?? run(tx));
          const minted = await mint(drafts);
          const proof = await inTurn(tx, () => prove(sql, minted));
          envelopes = minted.map(envelopeOf);
          sent = proof;
        });
        return envelopes;
      } catch (error) {
        // Otherwise no COMMIT was sent, or nothing was written.
        if (sent !== undefined && (await statements.wasCommitted({ database, clock, random }, sent, error)))
          return envelopes;
        if (!statements.isRepeatable(error) || attempt >= TRIES) throw error;
        await clock.sleep(backoffMs(attempt, 25, 400, random));
      }
    }
  };

  return {
    write: async (tx, events, cause) => {
      const minted = await mint(events, cause);
      const [first, ...more] = minted;
      if (first === undefined) return [];
      const sql = database.in(tx);
      await inTurn(tx, async () => {
        await statements.requireTransaction?.(sql);
        const insert = () => statements.insert(sql, [first, ...more]);
        await (statements.betweenOthers?.(sql, insert) ?? insert());
      });
      return minted.map(envelopeOf);
    },
    cancel: async (tx, eventId) => {
      const now = clock.now();
      const cancellation = cancelled(eventId, config.service, now);
      const sql = database.in(tx);
      const isCancelled = await inTurn(tx, async () => {
        await statements.requireTransaction?.(sql);
        return statements.cancel(sql, { eventId, dueAt: eventIdTime(eventId), now }, cancellation);
      });
      return isCancelled ? 'cancelled' : 'too-late';
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
