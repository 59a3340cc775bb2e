import { Duration } from 'aws-cdk-lib';
import { type IMetric, MathExpression } from 'aws-cdk-lib/aws-cloudwatch';
import { say } from '../checks/refusal.ts';
import { logGroupNameOf } from '../consumer/existing-function.ts';
import type { IInboxConsumer } from '../mailroom/consumer-interface.ts';
import type { AlarmPlan, AlarmSeverity } from './alarm-plan.ts';
import { COUNT_PERIOD, type ConsumerMetrics } from './metrics.ts';
import { throttled, troublePeriods } from './relay-alarms.ts';
import type { EffectiveThresholds } from './thresholds.ts';

const HOUR = Duration.hours(1);

/** The long window of an SLO: an SLO missed for a whole hour is not a brief spike. */
const LONG_WINDOW = HOUR;

/** A consumer's alarms on a single metric, except those on its SLO. */
export function consumerAlarms(
  consumer: IInboxConsumer,
  metrics: ConsumerMetrics,
  thresholds: EffectiveThresholds,
): AlarmPlan[] {
  const { name, order } = consumer;
  const { lost, undelivered, failedInvocations } = metrics;
  const plans: (Omit<AlarmPlan, 'metric'> & { readonly metric: IMetric | undefined })[] = [
    {
      id: 'Lost',
      anchor: 'event-lost-on-the-way-to-a-consumer',
      severity: 'page',
      what: `An event for ${name} is lost: it reached neither the source queue nor the queue of undelivered events.`,
      run: 'doctor',
      metric: lost,
      threshold: 0,
    },
    {
      id: 'DeadLetters',
      anchor: 'message-in-the-dead-letter-queue',
      severity: 'ticket',
      what: `A message of ${name} is in the dead-letter queue: it is poison, or out of attempts.`,
      run: `dlq list consumer:${name}`,
      metric: metrics.deadLetters,
      threshold: 0,
    },
    {
      id: 'Undelivered',
      anchor: 'event-undelivered',
      severity: 'ticket',
      what: `EventBridge could not deliver an event to the queue of ${name}.`,
      run: `dlq list rule:${name}`,
      metric: undelivered,
      threshold: 0,
    },
    {
      id: 'RuleFailures',
      anchor: 'event-undelivered',
      severity: 'ticket',
      what: `The rule of ${name} permanently failed to deliver events.`,
      run: `dlq list rule:${name}`,
      metric: failedInvocations,
      threshold: thresholds.failedInvocations,
    },
    {
      id: 'Behind',
      anchor: 'slo-missed-or-consumer-behind',
      // A critical SLO pages for it.
      severity: 'ticket',
      what: `The oldest message in the queue of ${name} has waited for more than ${say(thresholds.sustainedFor)}.`,
      run: 'status',
      metric: metrics.oldestMessage,
      threshold: thresholds.sustainedFor.toSeconds(),
    },
    ...hardships(consumer, metrics, thresholds),
    {
      id: 'TableFailures',
      anchor: 'consumer-cannot-reach-the-table',
      severity: 'ticket',
      what: `The consumer ${name} repeatedly could not reach the Mailroom table, or cannot read a row of it; its messages wait, and no attempt is counted.`,
      run: 'status',
      metric: metrics.tableFailures,
      threshold: 0,
      // A single waiting message fails once in 15 minutes, so two periods out of the last half hour mean an outage.
      breaches: 2,
      among: 6,
    },
    {
      id: 'OutOfOrder',
      anchor: 'events-out-of-order',
      severity: 'ticket',
      what: `For 15 minutes, events of ${name} have waited for an earlier event of their aggregate; one that does not come blocks its aggregate.`,
      run: `order show ${name}`,
      metric: order?.mode === 'strict' ? metrics.outOfOrder : undefined,
      threshold: 0,
      // Events that merely overtake each other are in order again after seconds.
      breaches: 3,
    },
    throttled('Throttles', metrics.throttles, `the function of ${name}`, thresholds),
  ];
  // A consumer of an existing queue has no rule, and few consumers are strict.
  return plans.flatMap(({ metric, ...plan }) => (metric === undefined ? [] : [{ ...plan, metric }]));
}

/**
 * A stalled consumer reports no latency, so its SLO would look met. Its queue reveals it: never empty, and nothing is deleted.
 *
 * @param heartbeats - the number of heartbeats sent: a consumer whose handlers hang still acknowledges them, and deletes their messages
 */
export function stalledConsumer(
  { name, slo }: IInboxConsumer,
  metrics: ConsumerMetrics,
  thresholds: EffectiveThresholds,
  heartbeats?: IMetric,
): AlarmPlan {
  const { waiting, deleted, processed } = metrics;
  const idle = heartbeats
    ? 'FILL(deleted, 0) <= FILL(heartbeats, 0) AND FILL(processed, 0) == 0'
    : 'FILL(deleted, 0) == 0';
  return {
    id: 'Stalled',
    anchor: 'consumer-stalled',
    severity: severityOf(slo),
    what: `The consumer ${name} is stalled: messages wait, and none was finished in ${say(thresholds.sustainedFor)}.`,
    run: 'status',
    metric: new MathExpression({
      expression: `IF(waiting > 0 AND ${idle}, 1, 0)`,
      usingMetrics: { waiting, deleted, ...(heartbeats && { heartbeats, processed }) },
      label: 'Messages wait, none finished',
      period: COUNT_PERIOD,
    }),
    threshold: 0,
    breaches: troublePeriods(thresholds),
  };
}

/**
 * The alarm on dead letters that pile up: the alarms for any dead letter do not fire again after the first. SQS counts no message that
 * it moves to a dead-letter queue, so the growth of the queues is measured.
 *
 * @param math - false without metric math: then only messages that the consumer rejects count
 */
export function growingDeadLetters(
  { name, slo }: IInboxConsumer,
  { deadLetters, undelivered, rejected }: ConsumerMetrics,
  { deadPerHour }: EffectiveThresholds,
  math: boolean,
): AlarmPlan {
  const hourly = { period: HOUR };
  const growth = new MathExpression({
    expression: undelivered === undefined ? 'DIFF(dead)' : 'MAX([DIFF(dead), DIFF(undelivered)])',
    usingMetrics: {
      dead: deadLetters.with(hourly),
      ...(undelivered && { undelivered: undelivered.with(hourly) }),
    },
    label: 'Dead letters added in an hour',
    period: HOUR,
  });
  return {
    id: 'DeadLettersGrow',
    anchor: 'dead-letters-unresolved-or-increasing',
    severity: severityOf(slo),
    what: `More than ${deadPerHour} messages of ${name} became dead letters in an hour.`,
    run: 'dlq list --by cause',
    metric: math ? growth : rejected.with(hourly),
    threshold: deadPerHour,
  };
}

/** A consumer whose every attempt fails reports no latency either. A function that crashes or times out counts as a failed attempt. */
export function failingConsumer(
  { name, slo }: IInboxConsumer,
  metrics: ConsumerMetrics,
  { attemptsFailed, sustainedFor }: EffectiveThresholds,
): AlarmPlan {
  const { processed, failed, rejected, errors } = metrics;
  const counted = Object.entries({ processed, failed, rejected, errors });
  return {
    id: 'Failing',
    anchor: 'attempts-failing',
    severity: severityOf(slo),
    what: `No attempt of ${name} has succeeded in two periods of ${say(sustainedFor)}, and more than ${attemptsFailed} failed in each.`,
    // Also the rejected messages: they are counted, too.
    run: `messages list --by cause --consumer ${name}`,
    metric: new MathExpression({
      expression: 'IF(FILL(processed, 0) == 0, SUM([failed, rejected, errors]), 0)',
      usingMetrics: Object.fromEntries(
        counted.map(([id, metric]) => [id, metric.with({ period: sustainedFor })]),
      ),
      label: 'Failed attempts, none successful',
      period: sustainedFor,
    }),
    threshold: attemptsFailed,
    // Twice: the retries of a burst may all fall into the next period.
    breaches: 2,
  };
}

function hardships(
  consumer: IInboxConsumer,
  metrics: ConsumerMetrics,
  thresholds: EffectiveThresholds,
): AlarmPlan[] {
  const { name } = consumer;
  const logGroupName = logGroupNameOf(consumer.function);
  return [
    {
      id: 'AttemptsOverThree',
      anchor: 'attempts-failing',
      severity: 'ticket',
      what: `A message of ${name} needed a fourth attempt; if it keeps failing, it is rejected.`,
      run: `messages list --failed --by cause --consumer ${name}`,
      metric: metrics.attemptsOverThree,
      threshold: thresholds.attemptsOverThree,
    },
    {
      id: 'FenceRefused',
      anchor: 'write-refused-by-the-fencing-token',
      severity: 'ticket',
      what: `A worker of ${name} lost its message to another worker, and its writes were refused.`,
      run: { logGroupName, term: 'FENCE_LOST' },
      metric: metrics.fenceRefused,
      threshold: thresholds.fenceRefused,
    },
    {
      id: 'UnstableEffects',
      anchor: 'unstable-effect-name',
      severity: 'ticket',
      what: `A message of ${name} was processed without an effect that happened in an earlier attempt, or may have; the log names the effects of both.`,
      run: { logGroupName, term: 'UNSTABLE_EFFECTS' },
      metric: metrics.unstableEffects,
      threshold: 0,
    },
    {
      id: 'EffectsInDoubt',
      anchor: 'effect-in-doubt',
      severity: 'ticket',
      what: `An effect of ${name} has happened, or may have, although its message is unfinished or rejected.`,
      run: { logGroupName, term: 'EFFECTS_IN_DOUBT' },
      metric: metrics.effectsInDoubt,
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
    anchor: 'slo-missed-or-consumer-behind',
    severity,
    what: `Over ${say(period)}, ${name} missed its SLO: too many events took longer than ${say(slo.latency)}.`,
    run: 'status',
    metric: latency.with({ period }),
    threshold: slo.latency.toMilliseconds(),
  }));
}

function severityOf(slo: IInboxConsumer['slo']): AlarmSeverity {
  return slo?.critical ? 'page' : 'ticket';
}
