import { errorMessage } from '../base/errors.ts';
import { type AuditedAddress, auditedDatabase } from '../database/audited-database.ts';
import type { MailroomRows } from '../operations/mailroom-rows.ts';
import { postgresMailroomRows } from '../store/postgres/mailroom-rows.ts';
import { type Sql, sqlState } from '../store/postgres/sql.ts';
import { wholeView } from '../store/postgres/whole-view.ts';

/**
 * The rows that a scheduled audit reads in PostgreSQL. A read fails if the server does not respond, or row-level security hides rows from the
 * login: what is hidden would count as absent.
 *
 * @param address - at which the database was opened
 */
export function auditedRows(database: Sql, address: AuditedAddress): MailroomRows {
  return postgresMailroomRows(
    wholeView(auditedDatabase(database, 'postgres', address, isUnreachable), 'auditor'),
  );
}

const UNREACHABLE =
  /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ECONNRESET|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|timeout|terminated/i;

/** True for an error of a connection, not of a statement. */
export function isUnreachable(error: unknown): boolean {
  return sqlState(error) === undefined && UNREACHABLE.test(`${Object(error).code} ${errorMessage(error)}`);
}
