import { awsAudit } from '../audit/aws-audit.ts';
import { createDatabaseAuditHandler } from '../audit/database-audit.ts';
import { auditSettings } from '../runtime/base/config.ts';
import { auditedRows } from '../runtime/postgres/audited-rows.ts';
import { nodePostgres } from '../runtime/postgres/databases.ts';
import { postgresPool } from '../runtime/postgres/postgres-pool.ts';
import { readPostgresSettings } from '../runtime/postgres/postgres-settings.ts';

const settings = readPostgresSettings(process.env);
const rows = auditedRows(nodePostgres(postgresPool(settings)), settings);

/** The audit of a Mailroom whose services also use PostgreSQL. */
export const handler = createDatabaseAuditHandler(
  awsAudit(auditSettings.read(process.env)),
  'postgres',
  rows,
);
