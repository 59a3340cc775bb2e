import { DATABASE_NAMES, type DatabaseEngine } from '../base/database-engine.ts';
import { errorCode, errorMessage, MailroomError } from '../base/errors.ts';
import type { Sql } from '../store/sql/database.ts';
import type { DatabaseAddress } from '../store/sql/database-address.ts';

/** The address of a database that a scheduled audit reads, for errors. */
export type AuditedAddress = Pick<DatabaseAddress, 'host' | 'port'>;

/**
 * The database of a scheduled audit. If its server does not respond, queries throw `UNREACHABLE`, which names what the function needs.
 *
 * @param isUnreachable - true for an error of a connection, not of a statement
 */
export function auditedDatabase(
  { adapter, query }: Sql,
  engine: DatabaseEngine,
  { host, port }: AuditedAddress,
  isUnreachable: (error: unknown) => boolean,
): Sql {
  return {
    adapter,
    query: (text, values) =>
      query(text, values).catch((error: unknown) => {
        if (!isUnreachable(error)) throw error;
        throw new MailroomError(
          'UNREACHABLE',
          `${DATABASE_NAMES[engine]} at ${host}:${port} does not respond (${errorMessage(error) || errorCode(error)}), so nothing was audited. The audit's subnets need a route to the ` +
            `database, and the database's security group must admit the audit on port ${port}.`,
          { cause: error },
        );
      }),
  };
}
