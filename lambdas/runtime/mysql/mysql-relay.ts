import { requireGiven } from '../base/given-names.ts';
import type { InvocationContext } from '../observe/telemetry.ts';
import {
  type DatabaseRelay,
  type DatabaseRelayDeps,
  databaseRelay,
  databaseRelayHandler,
  relayParts,
} from '../relay/database-relay.ts';
import { mysqlTransitions } from '../store/mysql/relay-transitions.ts';
import { refuseServer } from '../store/mysql/server-check.ts';
import type { Database } from '../store/sql/database.ts';
import { careForTables } from './mysql-care.ts';
import type { MysqlRelayConfig } from './mysql-settings.ts';

/** Dependencies of {@link createMysqlRelay}. */
export interface MysqlRelayDeps<Tx> extends DatabaseRelayDeps {
  /** From `readMysqlRelayConfig(process.env)`. */
  readonly config: MysqlRelayConfig;
  /** The database. Each claim and each mark is a short READ COMMITTED transaction. */
  readonly database: Database<Tx>;
}

/**
 * Creates a relay of a MySQL or MariaDB database. It holds no lock and no transaction while it publishes: a claim is a lease.
 *
 * Before its first claim, and again while that fails, it reads the settings of the server: with one that could lose events, it logs
 * `BAD_DATABASE` and publishes nothing.
 *
 * @throws `BAD_CONFIG` if the lease is not longer than a publish
 *
 * @example
 * ```ts
 * const relay = createMysqlRelay({ config, database: mysql2(createPool(url)), bus });
 * process.once('SIGTERM', () => relay.stop());
 * await relay.run();
 * ```
 */
export function createMysqlRelay<Tx>(deps: MysqlRelayDeps<Tx>): DatabaseRelay {
  requireGiven('createMysqlRelay', deps, 'config', 'database', 'bus');
  const { database } = deps;
  const { claim = 'skip-locked', orderBy } = deps.config;
  const parts = { ...relayParts(deps), database: database as Database<unknown>, claim };
  const transitions = mysqlTransitions(parts);
  let isChecked = false;
  return databaseRelay(deps, parts, {
    transitions: {
      ...transitions,
      claim: async (limit) => {
        if (!isChecked) await refuseServer(database, claim, orderBy);
        isChecked = true;
        return transitions.claim(limit);
      },
    },
    care: () => careForTables(parts),
  });
}

/**
 * Creates the handler of a Lambda function that a schedule invokes each minute: it runs a relay for a minute, or until shortly before its
 * timeout. Give it a timeout of 75 seconds and more.
 *
 * @throws as {@link createMysqlRelay}
 *
 * @example
 * ```ts
 * export const handler = createMysqlRelayHandler({ config, database, bus });
 * ```
 */
export function createMysqlRelayHandler<Tx>(
  deps: MysqlRelayDeps<Tx>,
): (event: unknown, context: InvocationContext) => Promise<void> {
  return databaseRelayHandler(createMysqlRelay(deps), deps);
}
