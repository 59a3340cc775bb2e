import { Duration, Fn, Token } from 'aws-cdk-lib';
import { MathExpression, Metric, Stats } from 'aws-cdk-lib/aws-cloudwatch';
import type { Rule } from 'aws-cdk-lib/aws-events';
import type { MetricName } from '../../lambdas/runtime/observe/telemetry.ts';
import { SCHEDULE_MIN } from '../checks/timings.ts';
import { type IInboxConsumer, SLO_PERCENTILE } from '../mailroom/consumer-interface.ts';
import type { IMailroom } from '../mailroom/mailroom-base.ts';
import type { MailroomTable } from '../mailroom/mailroom-table.ts';
import type { OutboxAudit } from '../mailroom/outbox-audit.ts';
import type { OutboxHeartbeat } from '../mailroom/outbox-heartbeat.ts';
import type { OutboxRelay } from '../mailroom/outbox-relay.ts';
import { DEFAULT_BUS } from '../mailroom/queue-senders.ts';

/** The period over which alarms and dashboard sum counters. */
export const COUNT_PERIOD = Duration.minutes(5);

const NAMESPACE = 'Mailroom';

/** A Mailroom with a relay in this app. */
type RelayedMailroom = IMailroom & { readonly relay: OutboxRelay; readonly table: MailroomTable };

/** The interval at which a sweep sends its gauges; alarms on them must not use a shorter period. */
function gaugePeriod({ relay }: RelayedMailroom): Duration {
  return Duration.minutes(
    Math.max(SCHEDULE_MIN.toMinutes(), relay.sweepEvery.toMinutes({ integral: false })),
  );
}

/** Metrics of the shared parts: the relay, the gauges of the sweep, and those that AWS publishes. */
export type RelayMetrics = ReturnType<typeof relayMetrics>;

/** Creates each metric once, for alarms and dashboard. */
export function relayMetrics(mailroom: RelayedMailroom) {
  const { relay, table } = mailroom;
  const dimensionsMap = { service: 'mailroom-relay', table: table.tableName };
  const period = gaugePeriod(mailroom);
  const counter = (name: MetricName) => own(mailroom, name, dimensionsMap, Stats.SUM, COUNT_PERIOD);
  const gauge = (name: MetricName, statistic = Stats.MAXIMUM) =>
    own(mailroom, name, dimensionsMap, statistic, period);
  const common = { period: COUNT_PERIOD, statistic: Stats.SUM };
  // There are many producers, and the metric has a dimension for each.
  const everywhere = (name: MetricName) =>
    new MathExpression({
      expression: `SUM(SEARCH('Namespace="${NAMESPACE}" MetricName="${name}" table="${table.tableName}"', 'Sum', ${COUNT_PERIOD.toSeconds()}))`,
      period: COUNT_PERIOD,
    });
  return {
    pending: gauge('PendingEvents'),
    undeclared: gauge('UndeclaredEvents'),
    oldestPending: gauge('OldestPendingAge'),
    oldestLease: gauge('OldestLeaseAge'),
    sweepFailures: counter('SweepFailures'),
    dead: gauge('DeadEvents'),
    becameDead: counter('EventsDead'),
    deadLetters: gauge('DeadLetters'),
    firstExpiry: gauge('FirstDeadLetterExpiry', Stats.MINIMUM),
    watchFailures: counter('WatchFailures'),
    published: counter('EventsPublished'),
    /** With those of producers that publish at once. */
    publishedByAll: everywhere('EventsPublished'),
    rescued: counter('EventsRescued'),
    refused: counter('EventsRefused'),
    publishRetries: counter('PublishRetries'),
    busFailures: counter('BusFailures'),
    publishLatency: own(mailroom, 'PublishLatency', dimensionsMap, Stats.p(99), COUNT_PERIOD),
    clockDifference: own(mailroom, 'ClockDifference', dimensionsMap, Stats.MAXIMUM, COUNT_PERIOD),
    stream: relay.failureQueue.metricApproximateNumberOfMessagesVisible({
      ...common,
      statistic: Stats.MAXIMUM,
    }),
    streamAge: relay.streamFunction.metric('IteratorAge', { ...common, statistic: Stats.MAXIMUM }),
    committed: everywhere('EventsCommitted'),
    invocations: {
      stream: relay.streamFunction.metricInvocations(common),
      sweep: relay.sweepFunction.metricInvocations(common),
    },
    readUnits: table.metricConsumedReadCapacityUnits(common),
    writeUnits: table.metricConsumedWriteCapacityUnits(common),
    streamErrors: relay.streamFunction.metricErrors(common),
    sweepErrors: relay.sweepFunction.metricErrors(common),
    streamThrottles: relay.streamFunction.metricThrottles(common),
    sweepThrottles: relay.sweepFunction.metricThrottles(common),
    readThrottles: table.metric('ReadThrottleEvents', common),
    writeThrottles: table.metric('WriteThrottleEvents', common),
  };
}

/** Metrics of one consumer: its own, and those that AWS publishes for its rule and queues. */
export type ConsumerMetrics = ReturnType<typeof consumerMetrics>;

/** Creates each metric once, for alarms and dashboard. */
export function consumerMetrics(mailroom: IMailroom, consumer: IInboxConsumer) {
  const { name, service, queue, slo, function: handler, alias } = consumer;
  // With an alias, only what goes through it: the function may do other work.
  const invoked = alias ?? handler;
  const dimensionsMap = { service, table: mailroom.table.tableName, consumer: name };
  const counter = (metric: MetricName) => own(consumer, metric, dimensionsMap, Stats.SUM, COUNT_PERIOD);
  const sum = { period: COUNT_PERIOD, statistic: Stats.SUM };
  const most = { period: COUNT_PERIOD, statistic: Stats.MAXIMUM };
  const ruleMetric = (metricName: string) =>
    added(
      name,
      ruleDimensions(mailroom, consumer).map((rule) =>
        new Metric({ namespace: 'AWS/Events', metricName, dimensionsMap: rule, ...sum }).attachTo(consumer),
      ),
    );
  return {
    received: counter('MessagesReceived'),
    processed: counter('MessagesProcessed'),
    duplicate: counter('MessagesDuplicate'),
    leased: counter('MessagesLeased'),
    limited: counter('MessagesLimited'),
    batchesSplit: counter('BatchesSplit'),
    failed: counter('MessagesFailed'),
    rejected: counter('MessagesRejected'),
    superseded: counter('MessagesSuperseded'),
    stale: counter('MessagesStale'),
    outOfOrder: counter('MessagesOutOfOrder'),
    tableFailures: counter('TableFailures'),
    attemptsOverThree: counter('AttemptsOverThree'),
    leasesExpired: counter('LeasesExpired'),
    fenceRefused: counter('FenceRefused'),
    unstableEffects: counter('UnstableEffects'),
    effectsInDoubt: counter('EffectsInDoubt'),
    latency: own(
      consumer,
      'ProcessLatency',
      dimensionsMap,
      Stats.p(slo?.percentile ?? SLO_PERCENTILE),
      COUNT_PERIOD,
    ),
    delivered: ruleMetric('Invocations'),
    failedInvocations: ruleMetric('FailedInvocations'),
    lost: ruleMetric('InvocationsFailedToBeSentToDlq'),
    deadLetters: consumer.deadLetterQueue.metricApproximateNumberOfMessagesVisible(most),
    undelivered: consumer.undeliveredQueue?.metricApproximateNumberOfMessagesVisible(most),
    // The minimum in a period: above zero means that the queue was never empty in it.
    waiting: queue.metricApproximateNumberOfMessagesVisible({ ...most, statistic: Stats.MINIMUM }),
    inFlight: queue.metricApproximateNumberOfMessagesNotVisible(most),
    /** Seconds. Without messages that were received three times or more. */
    oldestMessage: queue.metricApproximateAgeOfOldestMessage(most),
    deleted: queue.metricNumberOfMessagesDeleted(sum),
    receives: queue.metricNumberOfMessagesReceived(sum),
    emptyReceives: queue.metricNumberOfEmptyReceives(sum),
    invocations: invoked.metricInvocations(sum),
    errors: invoked.metricErrors(sum),
    throttles: invoked.metricThrottles(sum),
  };
}

/** Metrics of a scheduled audit: the findings of its runs. */
export type AuditMetrics = ReturnType<typeof auditMetrics>;

/** Creates each metric once, for alarms and dashboard. Each run sends each gauge once, so the period is the interval between runs. */
export function auditMetrics(mailroom: IMailroom, { every }: OutboxAudit) {
  const dimensionsMap = { service: 'mailroom-audit', table: mailroom.table.tableName };
  return {
    missing: own(mailroom, 'EventsMissing', dimensionsMap, Stats.MAXIMUM, every),
    duplicated: own(mailroom, 'EventsDuplicated', dimensionsMap, Stats.MAXIMUM, every),
    unreadable: own(mailroom, 'RowsUnreadable', dimensionsMap, Stats.MAXIMUM, every),
  };
}

/** Metrics of one consumer that a scheduled audit sends: its backlog and its deliveries. */
export type DeliveryCounts = ReturnType<typeof deliveryCounts>;

/**
 * Creates each metric once. Overlapping runs of the audit send the counts of one period several times, with the same time: only the
 * statistic Maximum over that period counts each event once.
 */
export function deliveryCounts(mailroom: IMailroom, { every }: OutboxAudit, { name }: IInboxConsumer) {
  const dimensionsMap = { service: 'mailroom-audit', table: mailroom.table.tableName, consumer: name };
  const counts = (metric: MetricName) => own(mailroom, metric, dimensionsMap, Stats.MAXIMUM, every);
  return {
    backlog: counts('Backlog'),
    oldestUnprocessed: counts('OldestUnprocessedAge'),
    overThreeAttempts: counts('MessagesOverThreeAttempts'),
    published: counts('DeliveriesPublished'),
    processed: counts('DeliveriesProcessed'),
    withinSlo: counts('DeliveriesWithinSlo'),
  };
}

/** Metrics of a scheduled heartbeat. */
export type HeartbeatMetrics = ReturnType<typeof heartbeatMetrics>;

/** Creates each metric once. Each run sends the gauge once, so the period is the interval between runs. */
export function heartbeatMetrics(mailroom: IMailroom, { every }: OutboxHeartbeat) {
  const dimensionsMap = { service: 'mailroom-heartbeat', table: mailroom.table.tableName };
  const late = own(mailroom, 'HeartbeatsLate', dimensionsMap, Stats.MAXIMUM, every);
  return {
    late,
    /** The number of heartbeats: each run that sends one emits the gauge. */
    sent: late.with({ statistic: Stats.SAMPLE_COUNT, period: COUNT_PERIOD }),
  };
}

function own(
  scope: IMailroom | IInboxConsumer,
  metricName: MetricName,
  dimensionsMap: Record<string, string>,
  statistic: string,
  period: Duration,
): Metric {
  return new Metric({ namespace: NAMESPACE, metricName, dimensionsMap, statistic, period }).attachTo(scope);
}

/** The dimensions of a consumer's rules; none for a consumer of an existing queue. */
function ruleDimensions(mailroom: IMailroom, consumer: IInboxConsumer): Record<string, string>[] {
  const { rule, externalRule, externalBus } = consumer;
  return [
    // Metrics of a rule on a custom bus have both dimensions (EventBridge user guide, "Monitoring").
    ...(rule === undefined
      ? []
      : [{ EventBusName: mailroom.bus.eventBusName, RuleName: ruleName(rule, mailroom.bus.eventBusName) }]),
    ...(externalRule === undefined || externalBus === undefined
      ? []
      : [
          {
            ...(externalBus === DEFAULT_BUS ? {} : { EventBusName: externalBus }),
            RuleName: ruleName(externalRule, externalBus),
          },
        ]),
  ];
}

/** Adds metrics of a consumer's rules; `undefined` for none. */
function added(consumer: string, metrics: readonly Metric[]): Metric | MathExpression | undefined {
  const [first, second] = metrics;
  if (first === undefined || second === undefined) return first;
  // A graph requires unique ids, of letters, digits and underscores.
  const id = `${first.metricName.toLowerCase()}_${consumer.replaceAll('-', '_')}`;
  return new MathExpression({
    expression: `FILL(${id}, 0) + FILL(${id}_external, 0)`,
    usingMetrics: { [id]: first, [`${id}_external`]: second },
    period: COUNT_PERIOD,
  });
}

/**
 * CloudFormation returns `bus|rule` as the name of a rule on a custom bus; its ARN always ends in `rule/bus/rule`. The name that the consumer
 * gave it contains the id of its own stack, and alarms may be in another.
 */
function ruleName({ ruleArn }: Rule, bus: string): string {
  const slashes = Token.isUnresolved(bus) ? 0 : bus.split('/').length - 1; // of a partner's bus
  return Fn.select(bus === DEFAULT_BUS ? 1 : 2 + slashes, Fn.split('/', ruleArn));
}
