import { Duration } from 'aws-cdk-lib';
import { MathExpression } from 'aws-cdk-lib/aws-cloudwatch';
import type { IInboxConsumer } from './consumer.ts';
import type { AlarmPlan, AlarmSeverity } from './delivery-alarm.ts';
import { COUNT_PERIOD, type ConsumerMetrics } from './delivery-metrics.ts';
import { throttled, troublePeriods } from './delivery-relay-alarms.ts';
import type { EffectiveThresholds } from './delivery-thresholds.ts';
import { say } from './refusal.ts';

/** The long window of an SLO: missing it for an hour is not a hiccup. */
const LONG_WINDOW = Duration.hours(1);

/** The alarms on one consumer that watch one metric each, without those on its SLO. */
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
      what: `An event for ${name} reached neither its queue nor the queue of undelivered events: it is lost to it.`,
      run: 'audit --since 25h',
      metric: metrics.lost,
      threshold: 0,
    },
    {
      id: 'DeadLetters',
      anchor: 'a-message-is-dead',
      severity: 'ticket',
      what: `A message of ${name} is in its dead-letter queue: poison, or out of attempts.`,
      run: `dlq list consumer:${name}`,
      metric: metrics.deadLetters,
      threshold: 0,
    },
    {
      id: 'Undelivered',
      anchor: 'an-event-was-not-delivered',
      severity: 'ticket',
      what: `EventBridge could not hand an event to the queue of ${name}.`,
      run: `dlq list rule:${name}`,
      metric: metrics.undelivered,
      threshold: 0,
    },
    {
      id: 'RuleFailures',
      anchor: 'a-rule-fails',
      severity: 'ticket',
      what: `The rule of ${name} failed for good to hand events over.`,
      run: `dlq list rule:${name}`,
      metric: metrics.failedInvocations,
      threshold: thresholds.failedInvocations,
    },
    ...hardships(name, metrics, thresholds),
    {
      id: 'TableFailures',
      anchor: 'a-consumer-cannot-reach-its-table',
      severity: 'ticket',
      what: `The consumer ${name} repeatedly could not reach the Mailroom table; its messages wait, and lose no attempt.`,
      run: 'status',
      metric: metrics.tableFailures,
      threshold: 0,
      // A single waiting message fails once in 15 minutes: two periods of the last half hour are an outage.
      breaches: 2,
      among: 6,
    },
    throttled('Throttles', metrics.throttles, `The function of ${name}`, thresholds),
  ];
}

/**
 * A stalled consumer reports no latency, so its SLO would look met. Its queue shows it: never empty, and nothing is deleted.
 */
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
    what: `Messages wait for ${name}, and it has finished none for ${say(thresholds.troubleFor)}.`,
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
      what: `A message of ${name} needed a fourth attempt: the next failures make it dead.`,
      run: `messages list --failed --by cause --consumer ${name}`,
      metric: metrics.attemptsOverThree,
      threshold: thresholds.attemptsOverThree,
    },
    {
      id: 'FenceRefused',
      anchor: 'a-fence-refused-a-write',
      severity: 'ticket',
      what: `A worker of ${name} lost its message to another one, and its writes were refused.`,
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
 * The two alarms on an SLO: missed now, and missed for long. Only both together page.
 *
 * @returns none without an SLO
 */
export function sloAlarms({ name, slo }: IInboxConsumer, { latency }: ConsumerMetrics): AlarmPlan[] {
  if (slo === undefined) return [];
  const severity = severityOf(slo);
  const windows = { SlowNow: COUNT_PERIOD, SlowForLong: LONG_WINDOW };
  return Object.entries(windows).map(([id, period]) => ({
    id,
    anchor: 'an-slo-is-missed',
    severity,
    what: `Over ${say(period)}, ${name} has processed events later than the ${say(slo.latency)} of its SLO.`,
    run: `messages list --failed --consumer ${name}`,
    metric: latency.with({ period }),
    threshold: slo.latency.toMilliseconds(),
  }));
}

function severityOf(slo: IInboxConsumer['slo']): AlarmSeverity {
  return slo?.critical ? 'page' : 'ticket';
}
