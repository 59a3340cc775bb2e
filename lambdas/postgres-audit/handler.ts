import { awsAudit } from '../audit/aws-audit.ts';
import { auditSettings } from '../runtime/base/config.ts';
import { createAuditHandler } from '../runtime/operations/audit/audit-handler.ts';
import { dynamoInboxRows } from '../runtime/operations/inbox-rows.ts';
import { combinedMailroomRows } from '../runtime/operations/mailroom-rows.ts';
import { dynamoOutboxRows } from '../runtime/operations/outbox-rows.ts';
import { auditedRows } from '../runtime/postgres/audited-rows.ts';
import { nodePostgres } from '../runtime/postgres/databases.ts';
import { postgresPool } from '../runtime/postgres/postgres-pool.ts';
import { readPostgresSettings } from '../runtime/postgres/postgres-settings.ts';

const settings = readPostgresSettings(process.env);
const aws = awsAudit(auditSettings.read(process.env));
const inTable = { outbox: dynamoOutboxRows(aws.table), inbox: dynamoInboxRows(aws.table) };
const inPostgres = auditedRows(nodePostgres(postgresPool(settings)), settings);

/** The audit of a Mailroom whose services also use PostgreSQL: it reads the rows of the table and of the database as one outbox and one inbox. */
export const handler = createAuditHandler({
  ...aws,
  stored: combinedMailroomRows(inPostgres, inTable),
  readsDatabase: 'postgres',
});
