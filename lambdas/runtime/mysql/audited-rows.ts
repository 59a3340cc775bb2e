import { type AuditedAddress, auditedDatabase } from '../database/audited-database.ts';
import type { MailroomRows } from '../operations/mailroom-rows.ts';
import { mysqlReads } from '../store/mysql/mailroom-rows.ts';
import { isOfConnection } from '../store/mysql/mysql-error.ts';
import { primaryView } from '../store/mysql/primary-view.ts';
import type { Sql } from '../store/sql/database.ts';
import { databaseMailroomRows } from '../store/sql/mailroom-rows.ts';

/**
 * The rows that a scheduled audit reads in MySQL. A read fails if the server does not respond, or is a replica: what that has not received yet
 * would count as absent.
 *
 * @param address - at which the database was opened
 */
export function auditedRows(database: Sql, address: AuditedAddress): MailroomRows {
  const audited = auditedDatabase(database, 'mysql', address, isOfConnection);
  return databaseMailroomRows(mysqlReads(primaryView(audited, `${address.host}:${address.port}`)));
}
