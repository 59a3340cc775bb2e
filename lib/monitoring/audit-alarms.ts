import { Duration } from 'aws-cdk-lib';
import { Stats, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch';
import { logGroupNameOf } from '../consumer/existing-function.ts';
import type { OutboxAudit } from '../mailroom/outbox-audit.ts';
import { type AlarmPlan, ON_DATABASE } from './alarm-plan.ts';
import type { AuditMetrics } from './metrics.ts';

const HOUR = Duration.hours(1);

/** The number of most recent audit runs that the audit's alarms consider. */
const AUDIT_RUNS = 3;

/** The alarms on a scheduled audit. Two runs must report a finding: a single one may have met an event in flight. */
export function auditAlarms(
  { every, since, readsDatabase, function: run }: OutboxAudit,
  metrics: AuditMetrics,
): AlarmPlan[] {
  const { missing, duplicated, unreadable } = metrics;
  // The range that includes everything the first of the three runs read.
  const rangeMs = since.toMilliseconds() + AUDIT_RUNS * every.toMilliseconds();
  const hours = Math.ceil(rangeMs / HOUR.toMilliseconds());
  const on = readsDatabase ? ON_DATABASE : '';
  const findings = {
    EventsMissing: { what: 'events that a consumer never received', metric: missing },
    EventsDuplicated: { what: 'events that a consumer wrote twice', metric: duplicated },
  };
  return [
    ...Object.entries(findings).map(
      ([id, { what, metric }]): AlarmPlan => ({
        id,
        anchor: 'events-missing-or-duplicated',
        severity: 'page',
        what: `Two runs of the audit found ${what}.`,
        run: `audit --since ${hours}h${on}`,
        metric,
        threshold: 0,
        breaches: 2,
        among: AUDIT_RUNS,
      }),
    ),
    {
      id: 'RowsUnreadable',
      anchor: 'unreadable-rows',
      severity: 'ticket',
      what: 'Two runs of the audit found rows that cannot be read, so it cannot account for their events.',
      run: `audit --since ${hours}h${on}`,
      metric: unreadable,
      threshold: 0,
      breaches: 2,
      among: AUDIT_RUNS,
    },
    {
      id: 'AuditSilent',
      anchor: 'audit-not-running',
      severity: 'ticket',
      what: `The audit has not completed a run for three times its interval; its log is ${logGroupNameOf(run)}.`,
      run: `audit --since 1h${on}`,
      metric: missing.with({ statistic: Stats.SAMPLE_COUNT }),
      threshold: 1,
      below: true,
      breaches: AUDIT_RUNS,
      missing: TreatMissingData.BREACHING,
    },
  ];
}
