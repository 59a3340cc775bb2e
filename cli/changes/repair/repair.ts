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
import { makeRepair, type PlannedRepair, planAuditRepair, shownRepair } from './audit-repair.ts';

/** An audit, and what its repair changes. Both are absent if it was stopped before. */
interface AuditedRepair {
  readonly found: AuditReport;
  readonly planned?: PlannedRepair;
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
    const repairing = await planAuditRepair(deployment, found, planned);
    if (options.apply) return { found, planned: repairing };
    return { found, planned: repairing, shown: await shownRepair(onBus(deployment), repairing) };
  },
  apply: async (deployment, { planned }, { reason }) =>
    planned && makeRepair(onBus(deployment), planned, reason),
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
