import type { MissingEvent } from '../../../lambdas/runtime/operations/audit/audit-ledger.ts';
import { planRepair, repairMissing } from '../../../lambdas/runtime/operations/audit/audit-repair.ts';
import type { AuditReport } from '../../../lambdas/runtime/operations/audit/audit-report.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { type Place, placeOf } from '../../deployment/place.ts';
import type { AuditRepair } from '../../reports/audit/repair-text.ts';
import type { PlannedVerdicts } from '../../terminal/change.ts';
import { outboxChangesOf } from '../outbox-changes.ts';

/** The parts of a deployment that a repair needs. */
export type RepairedDeployment = Pick<
  Deployment,
  | 'table'
  | 'stored'
  | 'clock'
  | 'clockIsTrusted'
  | 'queues'
  | 'directory'
  | 'region'
  | 'operator'
  | 'postgres'
>;

/** The events that a repair sends, and those that it does not. */
export interface SendingPlan {
  readonly place: Place;
  /** Those that it tries to send. */
  readonly missing: readonly MissingEvent[];
  /** Those that it does not, and why. */
  readonly others: AuditRepair['unsent'];
}

/** Plans the repair of an audit's missing events. @param planned - the plan that was confirmed: nothing else is sent */
export async function planSending(
  deployment: RepairedDeployment,
  report: AuditReport,
  planned?: PlannedVerdicts,
): Promise<SendingPlan> {
  const place = await placeOf(deployment);
  const missing = report.missing.filter((event) => planned === undefined || planned.has(repairKey(event)));
  return { place, missing, others: foundSince(planned, missing) };
}

/** The plan as it is shown: with what could be sent now. */
export async function shownSending(
  deployment: RepairedDeployment,
  { place, missing, others }: SendingPlan,
): Promise<AuditRepair> {
  const { toSend, unsent } = await planRepair(deployment, missing);
  return { applied: false, place, events: toSend, unsent: [...unsent, ...others] };
}

/** Sends what the plan describes. */
export async function send(
  deployment: RepairedDeployment,
  { place, missing, others }: SendingPlan,
  reason: string,
): Promise<AuditRepair> {
  const note = { by: await deployment.operator(), reason };
  const { sent, unsent } = await repairMissing(
    { ...deployment, outboxChanges: outboxChangesOf(deployment) },
    missing,
    note,
  );
  return { applied: true, place, events: sent, unsent: [...unsent, ...others] };
}

/** The events of a confirmed plan that the audit no longer finds missing. */
function foundSince(
  planned: PlannedVerdicts | undefined,
  missing: readonly MissingEvent[],
): AuditRepair['unsent'] {
  const still = new Set(missing.map(repairKey));
  return [...(planned ?? new Map<string, string>()).keys()].flatMap((key) => {
    const [eventId = '', consumer = ''] = key.split(' ');
    return still.has(key) ? [] : [{ eventId, consumer, why: 'the audit no longer finds it missing' }];
  });
}

/** The key of a missing event in a plan that was confirmed. */
export function repairKey({ eventId, consumer }: Pick<MissingEvent, 'eventId' | 'consumer'>): string {
  return `${eventId} ${consumer}`;
}
