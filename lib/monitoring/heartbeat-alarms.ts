import { Stats, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch';
import type { AlarmPlan } from './alarm-plan.ts';
import type { HeartbeatMetrics } from './metrics.ts';

/** The number of most recent heartbeats that the alarms consider. */
const HEARTBEATS = 3;

/** The alarms on the heartbeats. The alarms on stalled consumers and pending events page for what matters. */
export function heartbeatAlarms({ late }: HeartbeatMetrics): AlarmPlan[] {
  return [
    {
      id: 'HeartbeatLate',
      anchor: 'heartbeat-late-or-not-sent',
      severity: 'ticket',
      what: 'A consumer has not acknowledged two of three heartbeats: events do not reach it, or wait too long.',
      run: 'status',
      metric: late,
      threshold: 0,
      breaches: HEARTBEATS - 1,
      among: HEARTBEATS,
    },
    {
      id: 'HeartbeatSilent',
      anchor: 'heartbeat-late-or-not-sent',
      severity: 'ticket',
      what: 'No heartbeat has been sent for three times its interval.',
      run: 'status',
      metric: late.with({ statistic: Stats.SAMPLE_COUNT }),
      threshold: 1,
      below: true,
      breaches: HEARTBEATS,
      missing: TreatMissingData.BREACHING,
    },
  ];
}
