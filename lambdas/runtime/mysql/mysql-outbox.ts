import { capturedStatements, mysqlOutboxStatements } from '../store/mysql/outbox-statements.ts';
import {
  type DatabaseOutbox,
  type DatabaseOutboxDeps,
  databaseOutbox,
} from '../store/sql/database-outbox.ts';

/**
 * Creates the outbox of a service that keeps its data in MySQL or MariaDB. Run {@link migrateMysql} first.
 *
 * @throws `BAD_CONFIG` if the service's name begins with `aws.`, which EventBridge reserves for AWS; `BAD_ARGUMENT` if `relay` is unknown
 *
 * @example
 * ```ts
 * import { createPool } from 'mysql2/promise';
 * const config = readMysqlProducerConfig(process.env);
 * export const outbox = createMysqlOutbox({ config, database: mysql2(createPool(url)) });
 * ```
 */
export function createMysqlOutbox<Tx>(deps: DatabaseOutboxDeps<Tx>): DatabaseOutbox<Tx> {
  const statements = deps?.relay === 'cdc' ? capturedStatements() : mysqlOutboxStatements;
  return databaseOutbox(statements, deps);
}
