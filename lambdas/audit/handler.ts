import { auditSettings } from '../runtime/base/config.ts';
import { createAuditHandler } from '../runtime/operations/audit/audit-handler.ts';
import { awsAudit } from './aws-audit.ts';

/** The conservation check, on a schedule: nothing else notices an event that was never received. */
export const handler = createAuditHandler(awsAudit(auditSettings.read(process.env)));
