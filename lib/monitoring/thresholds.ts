import { Duration } from 'aws-cdk-lib';
import type { PropNames } from '../../lambdas/runtime/base/given-names.ts';
import { BEHIND_MS, STUCK_MS } from '../../lambdas/runtime/base/patience.ts';
import { between, say, unless } from '../checks/refusal.ts';
import { QUEUE_RETENTION_MAX } from '../checks/retentions.ts';
import { STREAM_RECORD_AGE_MAX } from '../mailroom/outbox-relay.ts';
import { COUNT_PERIOD } from './metrics.ts';

/** Alarm thresholds. Conditions that must never occur (a dead letter, a lost event) have none. */
export interface AlarmThresholds {
  /** The longest time that an event may wait unpublished. @default 5 minutes */
  readonly oldestPending?: Duration;
  /** Pages when the first dead letter will be permanently deleted in less than this. @default 24 hours */
  readonly deadLetterExpiry?: Duration;
  /**
   * The longest time that an event may be DEAD, or a message in a dead-letter queue, before it pages, in whole hours.
   *
   * @default 8 hours, a working day
   */
  readonly deadFor?: Duration;
  /** The number of dead letters of one consumer, or of DEAD events, that may be added in an hour. @default 10 */
  readonly deadPerHour?: number;
  /** The longest time that a problem may last that resolves without action, in whole multiples of 5 minutes. @default 15 minutes */
  readonly sustainedFor?: Duration;
  /**
   * The oldest a stream record may be when the relay receives it. The mapping drops records that are an hour old, so an age of an
   * hour is never measured: this must be less.
   *
   * @default 30 minutes
   */
  readonly streamAge?: Duration;
  /** The largest difference between a producer's clock and DynamoDB's, or delay of its commit; at least a minute. @default 1 minute */
  readonly clockDifference?: Duration;
  /** The number of fourth or later attempts allowed in 5 minutes. @default 0 */
  readonly attemptsOverThree?: number;
  /**
   * The number of attempts that may fail while none succeeds, in each of two consecutive periods of `sustainedFor`. With little
   * traffic, one message that cannot be processed exceeds 0; it fails at most `retry.maxAttempts` times.
   *
   * @default 0
   */
  readonly attemptsFailed?: number;
  /** The number of writes in 5 minutes that may be refused because another worker took the message over. @default 0 */
  readonly fenceRefused?: number;
  /** The number of rule invocations in 5 minutes that may fail permanently. @default 0 */
  readonly failedInvocations?: number;
  /** The number of calls in 5 minutes that Lambda or DynamoDB may throttle. @default 0 */
  readonly throttles?: number;
}

/** The names of {@link AlarmThresholds}. */
export const THRESHOLD_NAMES: PropNames<AlarmThresholds> = {
  oldestPending: 'optional',
  deadLetterExpiry: 'optional',
  deadFor: 'optional',
  deadPerHour: 'optional',
  sustainedFor: 'optional',
  streamAge: 'optional',
  clockDifference: 'optional',
  attemptsOverThree: 'optional',
  attemptsFailed: 'optional',
  fenceRefused: 'optional',
  failedInvocations: 'optional',
  throttles: 'optional',
};

/** The thresholds of the alarms, with defaults filled in. */
export type EffectiveThresholds = Required<AlarmThresholds>;

const DEFAULTS: EffectiveThresholds = {
  oldestPending: Duration.millis(STUCK_MS),
  deadLetterExpiry: Duration.hours(24),
  deadFor: Duration.hours(8),
  deadPerHour: 10,
  sustainedFor: Duration.millis(BEHIND_MS),
  streamAge: Duration.minutes(30),
  clockDifference: Duration.minutes(1),
  attemptsOverThree: 0,
  attemptsFailed: 0,
  fenceRefused: 0,
  failedInvocations: 0,
  throttles: 0,
};

/** Fills in the default of each threshold that is not given. */
export function withThresholds(given: AlarmThresholds = {}): EffectiveThresholds {
  const set = Object.entries(given).filter(([, value]) => value !== undefined);
  return { ...DEFAULTS, ...Object.fromEntries(set) };
}

/**
 * Validates thresholds.
 *
 * @returns one sentence per problem; none if every alarm can be created
 */
export function thresholdProblems(thresholds: EffectiveThresholds): string[] {
  const { deadFor, sustainedFor, streamAge } = thresholds;
  const counts = [
    'deadPerHour',
    'attemptsOverThree',
    'attemptsFailed',
    'fenceRefused',
    'failedInvocations',
    'throttles',
  ] as const;
  return [
    ...between('oldestPending', thresholds.oldestPending, Duration.minutes(1), Duration.days(1), ''),
    ...between('deadLetterExpiry', thresholds.deadLetterExpiry, Duration.hours(1), Duration.days(13), ''),
    ...between('deadFor', deadFor, Duration.hours(1), Duration.days(7), ''),
    ...wholeTimes('deadFor', deadFor, Duration.hours(1)),
    ...between('sustainedFor', sustainedFor, COUNT_PERIOD, Duration.days(1), ''),
    ...wholeTimes('sustainedFor', sustainedFor, COUNT_PERIOD),
    ...unless(
      streamAge.toMilliseconds() < STREAM_RECORD_AGE_MAX.toMilliseconds(),
      `streamAge is ${say(streamAge)}, but must be less than ${say(STREAM_RECORD_AGE_MAX)}: the mapping drops older ` +
        'records without calling the function, so their age is never measured. Lower streamAge.',
    ),
    ...between('clockDifference', thresholds.clockDifference, Duration.minutes(1), QUEUE_RETENTION_MAX, ''),
    ...counts.flatMap((name) =>
      unless(
        Number.isSafeInteger(thresholds[name]) && thresholds[name] >= 0,
        `${name} is ${thresholds[name]}, but must be a whole number, at least 0: the largest count that raises no alarm.`,
      ),
    ),
  ];
}

function wholeTimes(name: string, value: Duration, unit: Duration): string[] {
  return unless(
    value.toMilliseconds() % unit.toMilliseconds() === 0,
    `${name} is ${say(value)}, but must be a whole multiple of ${say(unit)}, the period of its metric.`,
  );
}
