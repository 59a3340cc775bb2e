import type { Duration } from 'aws-cdk-lib';
import { Metric, Stats, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import { Construct } from 'constructs';
import type { PropNames } from '../../lambdas/runtime/base/given-names.ts';
import type { MetricName } from '../../lambdas/runtime/observe/telemetry.ts';
import { refuse, refuseNames, say } from '../checks/refusal.ts';
import { SCHEDULE_MIN } from '../checks/timings.ts';
import { RUNBOOK_URL } from '../mailroom/tags.ts';
import {
  type AlarmPlan,
  type AlarmTopics,
  deliveryAlarm,
  letAlarmsPublish,
  ON_DATABASE,
  TOPIC_NAMES,
} from '../monitoring/alarm-plan.ts';
import { COUNT_PERIOD } from '../monitoring/metrics.ts';
import { stoppedEvents } from '../monitoring/relay-alarms.ts';
import { type AlarmThresholds, thresholdProblems, withThresholds } from '../monitoring/thresholds.ts';
import type { DatabaseOutboxRelay } from './database-outbox-relay.ts';

/** Alarms on the relay of a {@link PostgresMailroom} or a {@link MysqlMailroom}. */
export interface DatabaseAlarmsOptions extends Pick<AlarmThresholds, 'oldestPending' | 'sustainedFor'> {
  /** The topics to notify. */
  readonly topics: AlarmTopics;
  /** The address of the runbook, as for `DeliveryAlarms`. @default the page of this version in Mailroom's repository */
  readonly runbook?: string;
}

const NAMES: PropNames<DatabaseAlarmsOptions> = {
  topics: 'required',
  oldestPending: 'optional',
  sustainedFor: 'optional',
  runbook: 'optional',
};

/** Creates the alarms on a relay. Each relay sends its gauges once a minute, and a missing gauge means that none runs. */
export function databaseAlarms(
  mailroom: Construct,
  relay: DatabaseOutboxRelay,
  name: string,
  options: DatabaseAlarmsOptions,
): void {
  refuseNames(`The alarms of ${mailroom.node.path}`, options, NAMES);
  const { topics, runbook = RUNBOOK_URL, ...given } = options;
  refuseNames(`The topics of the alarms of ${mailroom.node.path}`, topics, TOPIC_NAMES);
  const thresholds = withThresholds(given);
  const scope = new Construct(mailroom, 'Alarms');
  refuse(`The alarms of ${mailroom.node.path}`, thresholdProblems(thresholds));
  for (const topic of new Set([topics.page, topics.ticket])) letAlarmsPublish(scope, topic);
  for (const plan of plans(mailroom, relay, name, thresholds))
    deliveryAlarm(scope, { mailroom, runbook }, plan).addAlarmAction(new SnsAction(topics[plan.severity]));
}

function plans(
  mailroom: Construct,
  relay: DatabaseOutboxRelay,
  name: string,
  { oldestPending, sustainedFor }: { readonly oldestPending: Duration; readonly sustainedFor: Duration },
): AlarmPlan[] {
  const own = (metricName: MetricName, statistic: string, period: Duration) =>
    new Metric({
      namespace: 'Mailroom',
      metricName,
      dimensionsMap: { service: 'mailroom-relay', table: name },
      statistic,
      period,
    }).attachTo(mailroom);
  const gauge = (metricName: MetricName) => own(metricName, Stats.MAXIMUM, SCHEDULE_MIN);
  const counter = (metricName: MetricName) => own(metricName, Stats.SUM, COUNT_PERIOD);
  const breaches = sustainedFor.toMilliseconds() / COUNT_PERIOD.toMilliseconds();
  const failing = { severity: 'ticket', threshold: 0, breaches, run: `status${ON_DATABASE}` } as const;
  return [
    {
      id: 'OldestPending',
      anchor: 'events-unpublished',
      severity: 'page',
      what: `An event has been unpublished for over ${say(oldestPending)}, or the relay has stopped running.`,
      run: `status${ON_DATABASE}`,
      metric: gauge('OldestPendingAge'),
      threshold: oldestPending.toMilliseconds(),
      breaches: 3,
      among: 5,
      missing: TreatMissingData.BREACHING,
    },
    ...stoppedEvents({ dead: gauge('DeadEvents'), undeclared: gauge('UndeclaredEvents') }, ON_DATABASE),
    {
      ...failing,
      id: 'RelayErrors',
      anchor: 'relay-function-failing',
      what: `For ${say(sustainedFor)}, invocations of the relay have failed.`,
      metric: relay.function.metricErrors({ period: COUNT_PERIOD, statistic: Stats.SUM }),
    },
    {
      ...failing,
      id: 'SweepFailures',
      anchor: 'relay-function-failing',
      what: `For ${say(sustainedFor)}, the relay has failed to read or clean its tables.`,
      metric: counter('SweepFailures'),
    },
    {
      ...failing,
      id: 'BusFailures',
      anchor: 'eventbridge-calls-failing',
      what: `For ${say(sustainedFor)}, EventBridge has refused or failed calls of the relay.`,
      metric: counter('BusFailures'),
    },
  ];
}
