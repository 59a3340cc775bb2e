import { createPool } from 'mysql2/promise';
import { awsAudit } from '../audit/aws-audit.ts';
import { createDatabaseAuditHandler } from '../audit/database-audit.ts';
import { auditSettings } from '../runtime/base/config.ts';
import { auditedRows } from '../runtime/mysql/audited-rows.ts';
import { mysql2 } from '../runtime/mysql/databases.ts';
import { mysqlPool } from '../runtime/mysql/mysql-pool.ts';
import { readMysqlSettings } from '../runtime/mysql/mysql-settings.ts';

const settings = readMysqlSettings(process.env);
const rows = auditedRows(mysql2(mysqlPool(createPool, settings)), settings);

/** The audit of a Mailroom whose services also use MySQL or MariaDB. */
export const handler = createDatabaseAuditHandler(awsAudit(auditSettings.read(process.env)), 'mysql', rows);
