import { Duration } from 'aws-cdk-lib';
import {
  AlarmStatusWidget,
  Dashboard,
  GraphWidget,
  type IAlarm,
  type IWidget,
  MathExpression,
  PeriodOverride,
  SingleValueWidget,
} from 'aws-cdk-lib/aws-cloudwatch';
import type { Construct } from 'constructs';
import { HOUR_MS } from '../../lambdas/runtime/base/units.ts';
import { say } from '../checks/refusal.ts';
import { SLO_PERCENTILE } from '../mailroom/consumer-interface.ts';
import { consumerRow, type WatchedConsumer } from './consumer-widgets.ts';
import type { AuditMetrics, HeartbeatMetrics, RelayMetrics } from './metrics.ts';
import { deliveryRow } from './rate-widgets.ts';
import {
  DASHBOARD_WIDTH,
  FROM_ZERO,
  graphs,
  heading,
  minus,
  named,
  namedIfAny,
  percentiles,
  sum,
} from './widgets.ts';

/** Properties of a {@link DeliveryDashboard}. */
export interface DeliveryDashboardProps {
  readonly relay: RelayMetrics;
  /** Absent unless an audit is scheduled. */
  readonly audit?: AuditMetrics | undefined;
  /** Absent unless a heartbeat is scheduled. */
  readonly heartbeat?: HeartbeatMetrics | undefined;
  readonly consumers: readonly WatchedConsumer[];
  /** The alarms, most urgent first. */
  readonly alarms: readonly IAlarm[];
}

/** CloudWatch's limit of alarms in one widget (dashboard body structure). */
const STATUS_ALARMS_MAX = 100;

/**
 * The dashboard, top to bottom in the order of an operator's questions: is anything wrong, is the SLO met, does everything that
 * comes in go out, what is dead, how is the relay, how is each consumer, what does it cost.
 *
 * `DeliveryAlarms` creates it from the metrics that its alarms watch.
 */
export class DeliveryDashboard extends Dashboard {
  constructor(scope: Construct, id: string, props: DeliveryDashboardProps) {
    const { relay, heartbeat, consumers, alarms } = props;
    super(scope, id, {
      defaultInterval: Duration.hours(6),
      // The counts of deliveries are right only for their own period.
      periodOverride: PeriodOverride.INHERIT,
      widgets: [
        [
          new AlarmStatusWidget({
            title: 'Status',
            width: DASHBOARD_WIDTH,
            height: 4,
            alarms: alarms.slice(0, STATUS_ALARMS_MAX),
          }),
        ],
        [heading('SLO')],
        promise(props),
        deliveryRow(consumers),
        [heading('Flow')],
        flow(relay, heartbeat, consumers),
        [heading('Dead')],
        dead(relay, consumers),
        [heading('Relay')],
        relayRow(relay),
        ...consumers.flatMap((watched) => [
          [heading(`Consumer ${watched.consumer.name}`)],
          consumerRow(watched),
        ]),
        [heading('Cost')],
        cost(relay, consumers),
      ],
    });
  }
}

function promise({ relay, audit, heartbeat, consumers }: DeliveryDashboardProps): IWidget[] {
  return graphs([
    { title: 'Oldest pending event', left: [named(relay.oldestPending, 'age')] },
    { title: 'Commit to bus', left: percentiles(relay.publishLatency) },
    {
      title: 'Commit to processed',
      left: consumers.map(({ consumer, metrics }) => {
        const { name, slo } = consumer;
        const target = slo === undefined ? '' : `, SLO ${say(slo.latency)}`;
        return named(metrics.latency, `${name} p${slo?.percentile ?? SLO_PERCENTILE}${target}`);
      }),
    },
    ...(audit === undefined
      ? []
      : [
          {
            title: 'Found by the audit',
            left: [
              named(audit.missing, 'missing'),
              named(audit.duplicated, 'duplicated'),
              named(audit.unreadable, 'unreadable'),
            ],
          },
        ]),
    ...(heartbeat === undefined
      ? []
      : [{ title: 'Heartbeat', left: [named(heartbeat.late, 'consumers that are late')] }]),
  ]);
}

/**
 * Two pairs of lines that should coincide: what one side hands over, and what the other side does with it. The counts of relay and
 * rules include heartbeats, those of producers and consumers do not, so heartbeats are subtracted.
 */
function flow(
  relay: RelayMetrics,
  heartbeat: HeartbeatMetrics | undefined,
  consumers: readonly WatchedConsumer[],
): IWidget[] {
  const without = (label: string, metric: MathExpression, rules = 1) =>
    heartbeat === undefined ? metric.with({ label }) : minus(label, metric, heartbeat.sent, rules);
  // An existing queue has senders whose events are not counted, so its consumer is left out on both sides.
  const ruled = consumers.flatMap(({ metrics: { delivered, processed } }) =>
    delivered === undefined ? [] : [{ delivered, processed }],
  );
  return graphs([
    {
      title: 'Committed = published; delivered to consumers = processed by them',
      left: [
        relay.committed.with({ label: 'committed' }),
        without('published', relay.publishedByAll),
        ...sum(
          'delivered',
          ruled.map(({ delivered }) => delivered),
        ).map((delivered) => without('delivered', delivered, ruled.length)),
        ...sum(
          'processed',
          ruled.map(({ processed }) => processed),
        ),
      ],
    },
  ]);
}

function dead(relay: RelayMetrics, consumers: readonly WatchedConsumer[]): IWidget[] {
  const hours = new MathExpression({
    expression: `expiry / ${HOUR_MS}`,
    usingMetrics: { expiry: relay.firstExpiry },
    label: 'hours until the first dead letter is deleted',
    period: relay.firstExpiry.period,
  });
  const sources = [
    named(relay.dead, 'dead'),
    named(relay.deadLetters, 'dead letters in all queues'),
    named(relay.stream, 'stream'),
    ...consumers.flatMap(({ consumer, metrics }) => [
      ...namedIfAny(metrics.undelivered, `rule:${consumer.name}`),
      named(metrics.deadLetters, `consumer:${consumer.name}`),
    ]),
  ];
  return [
    new GraphWidget({ title: 'By source', left: sources, width: DASHBOARD_WIDTH - 8, leftYAxis: FROM_ZERO }),
    new SingleValueWidget({ title: 'First expiry', metrics: [hours], width: 8, height: 6 }),
  ];
}

function relayRow(relay: RelayMetrics): IWidget[] {
  return graphs([
    {
      title: 'Failures and retries',
      left: [
        named(relay.rescued, 'rescued by the sweep'),
        named(relay.publishRetries, 'publish retries'),
        named(relay.refused, 'refused'),
        named(relay.becameDead, 'became DEAD'),
        named(relay.busFailures, 'bus failures'),
        named(relay.sweepFailures, 'sweep failures'),
        named(relay.watchFailures, 'watch failures'),
      ],
    },
    {
      title: 'Errors and throttles',
      left: [
        named(relay.streamErrors, 'stream errors'),
        named(relay.sweepErrors, 'sweep errors'),
        named(relay.streamThrottles, 'stream throttles'),
        named(relay.sweepThrottles, 'sweep throttles'),
        named(relay.readThrottles, 'table reads throttled'),
        named(relay.writeThrottles, 'table writes throttled'),
      ],
    },
    {
      title: 'Pending after a sweep',
      left: [named(relay.pending, 'pending'), named(relay.undeclared, 'undeclared source')],
    },
    {
      title: 'Ages',
      left: [
        named(relay.streamAge, 'stream record'),
        named(relay.oldestLease, 'oldest expired lease'),
        named(relay.clockDifference, 'clocks differ by'),
      ],
    },
  ]);
}

function cost(relay: RelayMetrics, consumers: readonly WatchedConsumer[]): IWidget[] {
  return graphs([
    { title: 'Table units', left: [named(relay.writeUnits, 'write'), named(relay.readUnits, 'read')] },
    {
      title: 'Lambda invocations',
      stacked: true,
      left: [
        named(relay.invocations.stream, 'stream'),
        named(relay.invocations.sweep, 'sweep'),
        ...consumers.map(({ consumer, metrics }) => named(metrics.invocations, consumer.name)),
      ],
    },
    { title: 'Events put on the bus', left: sum('events', [relay.published, relay.publishRetries]) },
    {
      title: 'SQS receives, including empty ones',
      stacked: true,
      left: consumers.flatMap(({ consumer, metrics }) => [
        named(metrics.receives, consumer.name),
        named(metrics.emptyReceives, `${consumer.name}, empty`),
      ]),
    },
  ]);
}
