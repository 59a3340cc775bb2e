import { requireGiven } from '../base/given-names.ts';
import type { InvocationContext } from '../observe/telemetry.ts';
import {
  type DatabaseRelay,
  type DatabaseRelayDeps,
  databaseRelay,
  databaseRelayHandler,
  relayParts,
} from '../relay/database-relay.ts';
import { nextDueMs } from '../store/postgres/outbox-claim.ts';
import { postgresTransitions } from '../store/postgres/relay-transitions.ts';
import type { Sql } from '../store/postgres/sql.ts';
import { careForTables } from './postgres-care.ts';
import type { PostgresRelayConfig } from './postgres-settings.ts';
import { type PgListener, wakeListener } from './wake-listener.ts';

/** Dependencies of {@link createPostgresRelay}. */
export interface PostgresRelayDeps extends DatabaseRelayDeps {
  /** From `readPostgresRelayConfig(process.env)`. */
  readonly config: PostgresRelayConfig;
  /** The database; each statement runs in its own transaction. */
  readonly database: Sql;
  /**
   * Creates a connection to the database itself, such as `() => new Client(url)` of `pg`. {@link DatabaseRelay.run} then sleeps while the queue is
   * empty, and the commit of an event wakes it. Without it, or while it fails, the relay polls. It pins a connection of RDS Proxy, and does not work through
   * PgBouncer: pass it only in a process that runs all the time. @default none
   */
  readonly listen?: (() => PgListener) | undefined;
}

/**
 * Creates a relay of a PostgreSQL database. It holds no lock and no transaction while it publishes: a claim is a lease.
 *
 *     claim                  publish            mark                    the lease ends
 *       |----------------------|------------------|------------------------|
 *       due_at = now + lease   PutEvents          pending -> published     another relay may claim
 *
 * After a crash between publish and mark, the event is published again under the same id, and the inbox absorbs it.
 *
 * @throws `BAD_CONFIG` if the lease is not longer than a publish
 *
 * @example
 * ```ts
 * const relay = createPostgresRelay({ config, database, bus });
 * process.once('SIGTERM', () => relay.stop());
 * await relay.run();
 * ```
 */
export function createPostgresRelay(deps: PostgresRelayDeps): DatabaseRelay {
  requireGiven('createPostgresRelay', deps, 'config', 'database', 'bus');
  const { config, database, listen } = deps;
  const parts = { ...relayParts(deps), config, database };
  return databaseRelay(deps, parts, {
    transitions: postgresTransitions(parts),
    care: () => careForTables(parts),
    listener: listen && ((wake) => wakeListener({ ...parts, listen, wake })),
    nextDueMs: () => nextDueMs(database),
  });
}

/**
 * Creates the handler of a Lambda function that a schedule invokes each minute: it runs a relay for a minute, or until shortly before its
 * timeout. Give it a timeout of 75 seconds and more.
 *
 * @throws as {@link createPostgresRelay}
 *
 * @example
 * ```ts
 * export const handler = createPostgresRelayHandler({ config, database, bus });
 * ```
 */
export function createPostgresRelayHandler(
  deps: PostgresRelayDeps,
): (event: unknown, context: InvocationContext) => Promise<void> {
  return databaseRelayHandler(createPostgresRelay(deps), deps);
}
