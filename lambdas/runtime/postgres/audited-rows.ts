import { errorCode, errorMessage, MailroomError } from '../base/errors.ts';
import type { MailroomRows } from '../operations/mailroom-rows.ts';
import { postgresMailroomRows } from '../store/postgres/mailroom-rows.ts';
import { type Sql, sqlState } from '../store/postgres/sql.ts';
import { wholeView } from '../store/postgres/whole-view.ts';
import type { DatabaseAddress } from '../store/sql/database-address.ts';

/**
 * The rows that a scheduled audit reads in PostgreSQL. A read fails if the server does not respond, or row-level security hides rows from the
 * login: what is hidden would count as absent.
 *
 * @param settings - those with which the database was opened, for the errors
 */
export function auditedRows(database: Sql, settings: Pick<DatabaseAddress, 'host' | 'port'>): MailroomRows {
  return postgresMailroomRows(wholeView(explaining(database, settings), 'auditor'));
}

function explaining({ adapter, query }: Sql, { host, port }: Parameters<typeof auditedRows>[1]): Sql {
  return {
    adapter,
    query: (text, values) =>
      query(text, values).catch((error: unknown) => {
        if (!isUnreachable(error)) throw error;
        throw new MailroomError(
          'UNREACHABLE',
          `PostgreSQL at ${host}:${port} does not respond (${errorMessage(error) || errorCode(error)}), so nothing was audited. The audit's subnets need a route to the ` +
            `database, and the database's security group must admit the audit on port ${port}.`,
          { cause: error },
        );
      }),
  };
}

const UNREACHABLE =
  /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ECONNRESET|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|timeout|terminated/i;

/** True for an error of a connection, not of a statement. */
export function isUnreachable(error: unknown): boolean {
  return sqlState(error) === undefined && UNREACHABLE.test(`${Object(error).code} ${errorMessage(error)}`);
}
