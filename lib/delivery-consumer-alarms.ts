import { Duration } from 'aws-cdk-lib';
import { MathExpression } from 'aws-cdk-lib/aws-cloudwatch';
import type { IInboxConsumer } from './consumer.ts';
import type { AlarmPlan, AlarmSeverity } from './delivery-alarm.ts';
import { COUNT_PERIOD, type ConsumerMetrics } from './delivery-metrics.ts';
import { throttled, troublePeriods } from './delivery-relay-alarms.ts';
import type { EffectiveThresholds } from './delivery-thresholds.ts';
import { say } from './refusal.ts';

/** The long window of an SLO: an SLO missed for a whole hour is not a brief spike. */
const LONG_WINDOW = Duration.hours(1);

/** A consumer's alarms on a single metric, except those on its SLO. */
export function consumerAlarms(
  consumer: IInboxConsumer,
  metrics: ConsumerMetrics,
  thresholds: EffectiveThresholds,
): AlarmPlan[] {
  const { name } = consumer;
  return [
    {
      id: 'Lost',
      anchor: 'an-event-was-lost-on-the-way-to-a-consumer',
      severity: 'page',
      what: `An event for ${name} is lost: it reached neither the source queue nor the queue of undelivered events.`,
      run: 'audit --since 25h',
      metric: metrics.lost,
      threshold: 0,
    },
    {
      id: 'DeadLetters',
      anchor: 'a-message-is-dead',
      severity: 'ticket',
      what: `A message of ${name} is in the dead-letter queue: it is poison, or out of attempts.`,
      run: `dlq list consumer:${name}`,
      metric: metrics.deadLetters,
      threshold: 0,
    },
    {
      id: 'Undelivered',
      anchor: 'an-event-was-not-delivered',
      severity: 'ticket',
      what: `EventBridge could not deliver an event to the queue of ${name}.`,
      run: `dlq list rule:${name}`,
      metric: metrics.undelivered,
      threshold: 0,
    },
    {
      id: 'RuleFailures',
      anchor: 'a-rule-fails',
      severity: 'ticket',
      what: `The rule of ${name} permanently failed to deliver events.`,
      run: `dlq list rule:${name}`,
      metric: metrics.failedInvocations,
      threshold: thresholds.failedInvocations,
    },
    ...hardships(name, metrics, thresholds),
    {
      id: 'TableFailures',
      anchor: 'a-consumer-cannot-reach-its-table',
      severity: 'ticket',
      what: `The consumer ${name} repeatedly could not reach the Mailroom table; its messages wait, and no attempt is counted.`,
      run: 'status',
      metric: metrics.tableFailures,
      threshold: 0,
      // A single waiting message fails once in 15 minutes, so two periods out of the last half hour mean an outage.
      breaches: 2,
      among: 6,
    },
    throttled('Throttles', metrics.throttles, `the function of ${name}`, thresholds),
  ];
}

/** A stalled consumer reports no latency, so its SLO would look met. Its queue reveals it: never empty, and nothing is deleted. */
export function stalledConsumer(
  { name, slo }: IInboxConsumer,
  metrics: ConsumerMetrics,
  thresholds: EffectiveThresholds,
): AlarmPlan {
  const { waiting, deleted } = metrics;
  return {
    id: 'StandsStill',
    anchor: 'a-consumer-is-stalled',
    severity: severityOf(slo),
    what: `The consumer ${name} is stalled: messages wait, and none was finished in ${say(thresholds.troubleFor)}.`,
    run: 'status',
    metric: new MathExpression({
      expression: 'IF(waiting > 0 AND FILL(deleted, 0) == 0, 1, 0)',
      usingMetrics: { waiting, deleted },
      label: 'Stalled',
      period: COUNT_PERIOD,
    }),
    threshold: 0,
    breaches: troublePeriods(thresholds),
  };
}

function hardships(name: string, metrics: ConsumerMetrics, thresholds: EffectiveThresholds): AlarmPlan[] {
  return [
    {
      id: 'AttemptsOverThree',
      anchor: 'messages-need-many-attempts',
      severity: 'ticket',
      what: `A message of ${name} needed a fourth attempt; if it keeps failing, it is rejected.`,
      run: `messages list --failed --by cause --consumer ${name}`,
      metric: metrics.attemptsOverThree,
      threshold: thresholds.attemptsOverThree,
    },
    {
      id: 'FenceRefused',
      anchor: 'a-fence-refused-a-write',
      severity: 'ticket',
      what: `A worker of ${name} lost its message to another worker, and its writes were refused.`,
      run: `messages list --failed --consumer ${name}`,
      metric: metrics.fenceRefused,
      threshold: thresholds.fenceRefused,
    },
    {
      id: 'UnstableEffects',
      anchor: 'an-effect-has-no-stable-name',
      severity: 'ticket',
      what: `A message of ${name} was processed without an effect that an earlier attempt had completed; the log names both.`,
      run: 'why <eventId>',
      metric: metrics.unstableEffects,
      threshold: 0,
    },
  ];
}

/**
 * The two alarms on an SLO, over the short and the long window. Only both together page.
 *
 * @returns an empty list without an SLO
 */
export function sloAlarms({ name, slo }: IInboxConsumer, { latency }: ConsumerMetrics): AlarmPlan[] {
  if (slo === undefined) return [];
  const severity = severityOf(slo);
  const windows = { SlowNow: COUNT_PERIOD, SlowForLong: LONG_WINDOW };
  return Object.entries(windows).map(([id, period]) => ({
    id,
    anchor: 'an-slo-is-missed',
    severity,
    what: `Over ${say(period)}, ${name} missed its SLO: too many events took longer than ${say(slo.latency)}.`,
    run: `messages list --failed --consumer ${name}`,
    metric: latency.with({ period }),
    threshold: slo.latency.toMilliseconds(),
  }));
}

function severityOf(slo: IInboxConsumer['slo']): AlarmSeverity {
  return slo?.critical ? 'page' : 'ticket';
}
