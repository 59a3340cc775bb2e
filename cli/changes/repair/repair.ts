import type { AuditReport } from '../../../lambdas/runtime/operations/audit/audit-report.ts';
import { withNeighbors } from '../../../lambdas/runtime/operations/bus-consumers.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { auditJson } from '../../reports/audit/audit-text.ts';
import {
  type AuditOptions,
  audit,
  auditExit,
  auditedText,
  auditResult,
  readAudit,
} from '../../reports/audit/read-audit.ts';
import type { AuditRepair } from '../../reports/audit/repair-text.ts';
import type { PlannedVerdicts } from '../../terminal/change.ts';
import { type OperatorChange, run } from '../change.ts';
import { planSending, type SendingPlan, send, shownSending } from './audit-repair.ts';

/** An audit, and what its repair sends. Both are absent if it was stopped before. */
interface AuditedRepair {
  readonly found: AuditReport;
  readonly sending?: SendingPlan;
  /** Absent if it is made at once. */
  readonly shown?: AuditRepair;
}

/** `mailroom audit --repair`. */
export const repair: OperatorChange<
  AuditOptions,
  AuditedRepair,
  AuditRepair | undefined,
  ReturnType<typeof auditJson>
> = {
  plan: async (deployment, options, planned) => {
    const found = await readAudit(deployment, options);
    if (deployment.terminal.signal.aborted) return { found };
    const sending = await planSending(deployment, found, planned);
    if (options.apply) return { found, sending };
    return { found, sending, shown: await shownSending(onBus(deployment), sending) };
  },
  apply: async (deployment, { sending }, { reason }) => sending && send(onBus(deployment), sending, reason),
  result: (deployment, { plan, made = plan.shown }, options) => {
    const result = auditResult(plan.found, options, made);
    return { json: auditJson(result), exitCode: auditExit(deployment, result) };
  },
  text: (deployment, { plan, made = plan.shown }, options) =>
    auditedText(deployment, auditResult(plan.found, options, made), options),
};

/** `mailroom audit`, which repairs only with `--repair`. @param planned - the plan of the repair that was confirmed */
export function auditOrRepair(deployment: Deployment, options: AuditOptions, planned?: PlannedVerdicts) {
  return options.repair === true ? run(repair, deployment, options, planned) : audit(deployment, options);
}

/** Repairs reach the consumers of every Mailroom on the bus. */
function onBus(deployment: Deployment): Deployment {
  const others = deployment.neighbors?.map(({ directory }) => directory) ?? [];
  return { ...deployment, directory: withNeighbors(deployment.directory, others) };
}
