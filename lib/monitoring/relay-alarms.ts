import { Duration } from 'aws-cdk-lib';
import { type IMetric, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch';
import { say } from '../checks/refusal.ts';
import type { AlarmPlan } from './alarm-plan.ts';
import { COUNT_PERIOD, type RelayMetrics } from './metrics.ts';
import type { EffectiveThresholds } from './thresholds.ts';

const HOUR = Duration.hours(1);

/** The alarms on the shared parts, in the order of the flow. @param streamLogGroup - the name of the stream relay's log group */
export function relayAlarms(
  metrics: RelayMetrics,
  thresholds: EffectiveThresholds,
  streamLogGroup: string,
): AlarmPlan[] {
  return [
    ...pages(metrics, thresholds),
    ...dead(metrics),
    ...troubles(metrics, thresholds, streamLogGroup),
    ...functions(metrics, thresholds),
    ...tableThrottles(metrics, thresholds),
  ];
}

function pages(metrics: RelayMetrics, thresholds: EffectiveThresholds): AlarmPlan[] {
  const { oldestPending, deadLetterExpiry, deadFor } = thresholds;
  return [
    {
      id: 'OldestPending',
      anchor: 'events-unpublished',
      severity: 'page',
      what: `An event has been unpublished for over ${say(oldestPending)}, or the sweep has stopped running.`,
      run: 'status',
      metric: metrics.oldestPending,
      threshold: oldestPending.toMilliseconds(),
      breaches: 3,
      among: 5,
      // Each sweep sends this gauge. If it is missing, events that the stream missed are not being published.
      missing: TreatMissingData.BREACHING,
    },
    {
      id: 'DeadLetterExpiry',
      anchor: 'dead-letter-about-to-expire',
      severity: 'page',
      what: `SQS will permanently delete a dead letter in less than ${say(deadLetterExpiry)}.`,
      run: 'dlq list',
      metric: metrics.firstExpiry,
      threshold: deadLetterExpiry.toMilliseconds(),
      below: true,
      // A sweep that could not read the queues reports nothing about the dead letter: the previous state holds.
      missing: TreatMissingData.IGNORE,
    },
    ...deadForLong(metrics, deadFor),
    {
      id: 'DeadEventsGrow',
      anchor: 'dead-letters-unresolved-or-increasing',
      severity: 'page',
      what: `More than ${thresholds.deadPerHour} events became DEAD in an hour; no consumer receives them.`,
      run: 'dlq list dead --by cause',
      metric: metrics.becameDead.with({ period: HOUR }),
      threshold: thresholds.deadPerHour,
    },
  ];
}

/** Whole hours and their maxima: a dead letter is hidden for seconds while someone inspects it. */
function deadForLong({ dead, deadLetters }: RelayMetrics, deadFor: Duration): AlarmPlan[] {
  const kinds = {
    DeadEventsForLong: { what: 'Events have been DEAD', metric: dead },
    DeadLettersForLong: { what: 'Messages have been in dead-letter queues', metric: deadLetters },
  };
  return Object.entries(kinds).map(([id, { what, metric }]) => ({
    id,
    anchor: 'dead-letters-unresolved-or-increasing',
    severity: 'page',
    what: `${what} for ${say(deadFor)} without being repaired or discarded.`,
    run: 'dlq list --by cause',
    metric: metric.with({ period: HOUR }),
    threshold: 0,
    breaches: deadFor.toHours(),
    missing: TreatMissingData.IGNORE,
  }));
}

/** The alarms on events that no relay publishes, in any storage. @param options - of the command that lists them */
export function stoppedEvents(metrics: Pick<RelayMetrics, 'dead' | 'undeclared'>, options = ''): AlarmPlan[] {
  return [
    {
      id: 'DeadEvents',
      anchor: 'dead-event',
      severity: 'ticket',
      what: 'The relay has stopped retrying an event: it is DEAD and reaches no consumer until it is requeued.',
      run: `dlq list dead${options}`,
      metric: metrics.dead,
      threshold: 0,
      missing: TreatMissingData.IGNORE,
    },
    {
      id: 'UndeclaredEvents',
      anchor: 'events-with-an-undeclared-source',
      severity: 'ticket',
      what: 'Events wait in the outbox because no producer of this Mailroom declares their source: the relay does not publish them.',
      run: `events list --pending --by source${options}`,
      metric: metrics.undeclared,
      threshold: 0,
      missing: TreatMissingData.IGNORE,
    },
  ];
}

function dead(metrics: RelayMetrics): AlarmPlan[] {
  return [
    ...stoppedEvents(metrics),
    {
      id: 'StreamFailures',
      anchor: 'stream-batch-discarded',
      severity: 'ticket',
      what: 'The stream mapping stopped retrying a batch of events; the sweep publishes them.',
      run: 'dlq list stream',
      metric: metrics.stream,
      threshold: 0,
    },
  ];
}

function troubles(
  metrics: RelayMetrics,
  thresholds: EffectiveThresholds,
  streamLogGroup: string,
): AlarmPlan[] {
  const { streamAge, clockDifference } = thresholds;
  return [
    {
      id: 'Rescued',
      anchor: 'stream-relay-misses-events',
      severity: 'ticket',
      what: `For ${say(thresholds.sustainedFor)}, the sweep has published events that the stream relay should have published.`,
      run: 'status',
      metric: metrics.rescued,
      threshold: 0,
      breaches: troublePeriods(thresholds),
    },
    {
      id: 'StreamAge',
      anchor: 'stream-relay-misses-events',
      severity: 'ticket',
      what: `The stream relay is more than ${say(streamAge)} behind the table.`,
      run: 'status',
      metric: metrics.streamAge,
      threshold: streamAge.toMilliseconds(),
    },
    {
      id: 'BusFailures',
      anchor: 'eventbridge-calls-failing',
      severity: 'ticket',
      what: `For ${say(thresholds.sustainedFor)}, EventBridge has refused or failed calls of the relay, or of producers that publish at once.`,
      run: 'status',
      metric: metrics.busFailures,
      threshold: 0,
      breaches: troublePeriods(thresholds),
    },
    {
      id: 'WatchFailures',
      anchor: 'dead-letter-queue-unreadable',
      severity: 'ticket',
      what: 'The dead-letter watch could not read every queue, so a dead letter could expire without an alarm.',
      run: 'dlq list',
      metric: metrics.watchFailures,
      threshold: 0,
    },
    {
      id: 'ClockDifference',
      anchor: 'producer-clock-skew',
      severity: 'ticket',
      what: `A producer's clock is off by more than ${say(clockDifference)}, or its commit took that long; the log names the events.`,
      run: { logGroupName: streamLogGroup, term: 'differenceMs' },
      metric: metrics.clockDifference,
      threshold: clockDifference.toMilliseconds(),
    },
  ];
}

function functions(metrics: RelayMetrics, thresholds: EffectiveThresholds): AlarmPlan[] {
  const paths = {
    Stream: { errors: metrics.streamErrors, throttles: metrics.streamThrottles },
    Sweep: { errors: metrics.sweepErrors, throttles: metrics.sweepThrottles },
  };
  const perPath = Object.entries(paths).flatMap(([path, { errors, throttles }]): AlarmPlan[] => [
    {
      id: `${path}Errors`,
      anchor: 'relay-function-failing',
      severity: 'ticket',
      what: `For ${say(thresholds.sustainedFor)}, the relay's ${path.toLowerCase()} function has crashed or timed out.`,
      run: 'status',
      metric: errors,
      threshold: 0,
      breaches: troublePeriods(thresholds),
    },
    throttled(`${path}Throttles`, throttles, `the relay's ${path.toLowerCase()} function`, thresholds),
  ]);
  return [
    ...perPath,
    {
      id: 'SweepFailures',
      anchor: 'relay-function-failing',
      severity: 'ticket',
      what: `For ${say(thresholds.sustainedFor)}, steps of the sweep have failed: some minutes of the outbox are not swept.`,
      run: 'status',
      metric: metrics.sweepFailures,
      threshold: 0,
      breaches: troublePeriods(thresholds),
    },
  ];
}

/** An alarm on a function that Lambda throttles. */
export function throttled(
  id: string,
  metric: IMetric,
  subject: string,
  thresholds: EffectiveThresholds,
): AlarmPlan {
  return {
    id,
    anchor: 'functions-throttled',
    severity: 'ticket',
    what: `Lambda has throttled ${subject} for ${say(thresholds.sustainedFor)}.`,
    run: 'status',
    metric,
    threshold: thresholds.throttles,
    breaches: troublePeriods(thresholds),
  };
}

function tableThrottles(
  { readThrottles, writeThrottles }: RelayMetrics,
  thresholds: EffectiveThresholds,
): AlarmPlan[] {
  const metrics = { Read: readThrottles, Write: writeThrottles };
  return Object.entries(metrics).map(([kind, metric]) => ({
    id: `Table${kind}Throttles`,
    anchor: 'table-throttled',
    severity: 'ticket',
    what: `For ${say(thresholds.sustainedFor)}, DynamoDB has throttled ${kind.toLowerCase()}s of the table.`,
    run: 'status',
    metric,
    threshold: thresholds.throttles,
    breaches: troublePeriods(thresholds),
  }));
}

/** The number of counter periods that a problem may last. */
export function troublePeriods({ sustainedFor }: EffectiveThresholds): number {
  return sustainedFor.toMilliseconds() / COUNT_PERIOD.toMilliseconds();
}
