import type { ChangedRow } from '../../../lambdas/runtime/operations/audit/audit-changed-rows.ts';
import type { MissingEvent } from '../../../lambdas/runtime/operations/audit/audit-ledger.ts';
import { planRepair, repairMissing } from '../../../lambdas/runtime/operations/audit/audit-repair.ts';
import type { AuditReport } from '../../../lambdas/runtime/operations/audit/audit-report.ts';
import {
  planChangedRows,
  repairChangedRows,
} from '../../../lambdas/runtime/operations/audit/changed-row-repair.ts';
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
  | 'database'
>;

/** The changes of a repair, and what it leaves. */
export interface PlannedRepair {
  readonly place: Place;
  /** The events that it tries to send. */
  readonly missing: readonly MissingEvent[];
  /** The rows that it tries to put right. */
  readonly changed: readonly ChangedRow[];
  /** Those of a confirmed plan that the audit no longer finds. */
  readonly gone: Pick<AuditRepair, 'unsent'> & { readonly unrepaired: AuditRepair['rows']['unrepaired'] };
}

/** Plans the repair of an audit's missing events and changed rows. @param planned - the plan that was confirmed: nothing else is repaired */
export async function planAuditRepair(
  deployment: RepairedDeployment,
  report: AuditReport,
  planned?: PlannedVerdicts,
): Promise<PlannedRepair> {
  const place = await placeOf(deployment);
  const isPlanned = (found: Repaired) => planned === undefined || planned.has(repairKey(found));
  const missing = report.missing.filter(isPlanned);
  const changed = report.changedRows.filter(isPlanned);
  return { place, missing, changed, gone: foundSince(planned, [...missing, ...changed]) };
}

/** The plan as it is shown: with what could be repaired now. */
export async function shownRepair(
  deployment: RepairedDeployment,
  { place, missing, changed, gone }: PlannedRepair,
): Promise<AuditRepair> {
  const { toSend, unsent } = await planRepair(deployment, missing);
  const { repaired, unrepaired } = planChangedRows(deployment, changed);
  return {
    applied: false,
    place,
    events: toSend,
    unsent: [...unsent, ...gone.unsent],
    rows: { repaired, unrepaired: [...unrepaired, ...gone.unrepaired] },
  };
}

/** Makes the repair that the plan describes: the rows first, which takes no queue. */
export async function makeRepair(
  deployment: RepairedDeployment,
  { place, missing, changed, gone }: PlannedRepair,
  reason: string,
): Promise<AuditRepair> {
  const note = { by: await deployment.operator(), reason };
  const { repaired, unrepaired } = await repairChangedRows(deployment, changed, note);
  const { sent, unsent } = await repairMissing(
    { ...deployment, outboxChanges: outboxChangesOf(deployment) },
    missing,
    note,
  );
  return {
    applied: true,
    place,
    events: sent,
    unsent: [...unsent, ...gone.unsent],
    rows: { repaired, unrepaired: [...unrepaired, ...gone.unrepaired] },
  };
}

/** A change of a repair, as its key names it: an event at a consumer, or an outbox row. */
type Repaired = Pick<ChangedRow, 'eventId' | 'consumer'>;

/** The parts of a confirmed plan that the audit no longer finds. */
function foundSince(planned: PlannedVerdicts | undefined, found: readonly Repaired[]): PlannedRepair['gone'] {
  const still = new Set(found.map(repairKey));
  const gone = [...(planned ?? new Map<string, string>())].flatMap(([key, verdict]) => {
    const [eventId = '', consumer = ''] = key.split(' ');
    return still.has(key) ? [] : [{ eventId, consumer, verdict }];
  });
  return {
    unsent: gone.flatMap(({ verdict, ...event }) =>
      verdict === 'send' ? [{ ...event, why: 'the audit no longer finds it missing' }] : [],
    ),
    unrepaired: gone.flatMap(({ verdict, eventId, consumer }) =>
      verdict === 'send'
        ? []
        : [
            {
              eventId,
              consumer: consumer === '' ? null : consumer,
              why: 'the audit no longer finds it changed',
            },
          ],
    ),
  };
}

/** The key of a missing event or a changed row in a plan that was confirmed. */
export function repairKey({ eventId, consumer }: Repaired): string {
  return `${eventId} ${consumer ?? ''}`;
}
