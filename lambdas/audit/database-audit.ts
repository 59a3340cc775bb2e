import type { DatabaseEngine } from '../runtime/base/database-engine.ts';
import { type AuditHandlerDeps, createAuditHandler } from '../runtime/operations/audit/audit-handler.ts';
import { dynamoInboxRows } from '../runtime/operations/inbox-rows.ts';
import { combinedMailroomRows, type MailroomRows } from '../runtime/operations/mailroom-rows.ts';
import { dynamoOutboxRows } from '../runtime/operations/outbox-rows.ts';

/**
 * Creates the handler of the audit of a Mailroom whose services also use a database: it reads the rows of the table and of the database as one
 * outbox and one inbox.
 *
 * @param inDatabase - the rows of the database
 */
export function createDatabaseAuditHandler(
  deps: AuditHandlerDeps,
  readsDatabase: DatabaseEngine,
  inDatabase: MailroomRows,
): ReturnType<typeof createAuditHandler> {
  const inTable = { outbox: dynamoOutboxRows(deps.table), inbox: dynamoInboxRows(deps.table) };
  return createAuditHandler({ ...deps, stored: combinedMailroomRows(inDatabase, inTable), readsDatabase });
}
