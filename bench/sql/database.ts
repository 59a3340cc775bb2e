import type { Bus } from '../../lambdas/runtime/bus/event-bus.ts';
import type { DatabaseRelayConfig } from '../../lambdas/runtime/relay/database-config.ts';
import type { DatabaseRelay } from '../../lambdas/runtime/relay/database-relay.ts';
import type { DatabaseOutbox } from '../../lambdas/runtime/store/sql/database-outbox.ts';

/** A migrated database of its own for one measurement. */
export interface BenchDatabase {
  readonly outbox: Pick<DatabaseOutbox<unknown>, 'commit'>;
  /** A relay in this process, with its own connections. It polls. */
  readonly relayOf: (bus: Bus, options?: Pick<DatabaseRelayConfig, 'orderBy'>) => DatabaseRelay;
  /** The queue of a relay with `orderBy: 'aggregate'`. */
  readonly inOrder: () => OrderedQueue;
  /** Brings what the database knows about the queue up to date, after many inserts. */
  readonly analyze: () => Promise<unknown>;
  /** Begins a transaction that sees the queue as it is now. @returns ends it */
  readonly holdSnapshot: () => Promise<() => Promise<void>>;
  /** The bytes of its logs of changes so far. */
  readonly logBytes: () => Promise<number>;
  /** The bytes of tables with their indexes. */
  readonly bytesOf: (...tables: readonly string[]) => Promise<number>;
  /** Inserts events of 1 KB that were published 30 days ago. */
  readonly writePublished: (events: number) => Promise<unknown>;
  readonly countPublished: () => Promise<number>;
  /** The statements that were sent so far, each of which waits for its answer. */
  readonly statements: () => number;
  /** Closes its connections, and those of its relays. */
  readonly close: () => Promise<void>;
}

/** The queue of a relay that publishes the events of an aggregate one after another. */
interface OrderedQueue {
  /** Claims at most a number of events. One that only puts events off ends after 5 seconds. */
  readonly claim: (limit: number) => Promise<unknown>;
  /** The events that wait for others. */
  readonly countPutOff: () => Promise<number>;
  /** Makes all events due in an hour, and brings what the database knows about the queue up to date. */
  readonly putOff: () => Promise<unknown>;
  /** Makes the first event due now, under no claim. */
  readonly makeFirstDue: () => Promise<unknown>;
}

/** A kind of database that is measured. */
export interface BenchServer<Database extends BenchDatabase = BenchDatabase> {
  /** The name of its part, with which its figures begin. */
  readonly name: 'postgres' | 'mysql';
  /** For titles. */
  readonly title: string;
  /** Starts real servers with durable commits while `use` runs. */
  readonly run: <T>(use: (create: (name: string) => Promise<Database>) => Promise<T>) => Promise<T>;
}

/** The settings of every producer. */
export const PRODUCER = { service: 'orders', tableName: 'bench', publishes: ['Placed'] };

/** The settings of every relay. */
export const RELAY: DatabaseRelayConfig = {
  tableName: 'bench',
  busName: 'bench',
  claimLeaseMs: 60_000,
  publishTimeoutMs: 10_000,
  maxAttempts: 20,
  publishedRetentionDays: 7,
  sources: ['orders'],
  pollMs: 100,
};

/** The connections of a relay. */
export const RELAY_CONNECTIONS = 8;

/** The connections of the producers of one database. */
export const PRODUCER_CONNECTIONS = 40;
