import { Duration } from 'aws-cdk-lib';
import { COUNT_PERIOD } from './delivery-metrics.ts';
import { STREAM_RECORD_AGE_MAX } from './outbox-relay.ts';
import { between, say, unless } from './refusal.ts';
import { QUEUE_RETENTION_MAX } from './retentions.ts';

/** When the alarms go off. What may never happen at all (a dead letter, a lost event) has no threshold. */
export interface AlarmThresholds {
  /** How long an event may wait unpublished. @default 5 minutes */
  readonly oldestPending?: Duration;
  /** Somebody is paged when the first dead letter is deleted for ever in less than this. @default 24 hours */
  readonly deadLetterExpiry?: Duration;
  /** How long anything may be dead before somebody is paged, in whole hours: a working day. @default 8 hours */
  readonly deadFor?: Duration;
  /** How long a trouble that mends itself may go on, in whole multiples of 5 minutes. @default 15 minutes */
  readonly troubleFor?: Duration;
  /**
   * How old a stream record may be when the relay gets it. The mapping gives records up that are an hour old, so an age
   * of an hour is never seen: this must be less.
   *
   * @default 30 minutes
   */
  readonly streamAge?: Duration;
  /** How far a producer's clock may be from DynamoDB's, or its commit be late; a minute at least. @default 1 minute */
  readonly clockDifference?: Duration;
  /** How many attempts in 5 minutes may be a fourth one or more. @default 0 */
  readonly attemptsOverThree?: number;
  /** How many writes in 5 minutes may be refused because somebody else had taken over. @default 0 */
  readonly fenceRefused?: number;
  /** How many rule invocations in 5 minutes may fail for good. @default 0 */
  readonly failedInvocations?: number;
  /** How many calls in 5 minutes Lambda or DynamoDB may throttle. @default 0 */
  readonly throttles?: number;
}

/** The thresholds of the alarms, each one chosen or by default. */
export type EffectiveThresholds = Required<AlarmThresholds>;

const DEFAULTS: EffectiveThresholds = {
  oldestPending: Duration.minutes(5),
  deadLetterExpiry: Duration.hours(24),
  deadFor: Duration.hours(8),
  troubleFor: Duration.minutes(15),
  streamAge: Duration.minutes(30),
  clockDifference: Duration.minutes(1),
  attemptsOverThree: 0,
  fenceRefused: 0,
  failedInvocations: 0,
  throttles: 0,
};

/** The thresholds that hold: those that are given, and the defaults of the others. */
export function withThresholds(given: AlarmThresholds = {}): EffectiveThresholds {
  const set = Object.entries(given).filter(([, value]) => value !== undefined);
  return { ...DEFAULTS, ...Object.fromEntries(set) };
}

/**
 * What is wrong with thresholds.
 *
 * @returns a sentence for each fault; none when an alarm can be made of each
 */
export function thresholdProblems(thresholds: EffectiveThresholds): string[] {
  const { deadFor, troubleFor, streamAge } = thresholds;
  const counts = ['attemptsOverThree', 'fenceRefused', 'failedInvocations', 'throttles'] as const;
  return [
    ...between('oldestPending', thresholds.oldestPending, Duration.minutes(1), Duration.days(1), ''),
    ...between('deadLetterExpiry', thresholds.deadLetterExpiry, Duration.hours(1), Duration.days(13), ''),
    ...between('deadFor', deadFor, Duration.hours(1), Duration.days(7), ''),
    ...wholeTimes('deadFor', deadFor, Duration.hours(1)),
    ...between('troubleFor', troubleFor, COUNT_PERIOD, Duration.days(1), ''),
    ...wholeTimes('troubleFor', troubleFor, COUNT_PERIOD),
    ...unless(
      streamAge.toMilliseconds() < STREAM_RECORD_AGE_MAX.toMilliseconds(),
      `streamAge is ${say(streamAge)}, but must be less than ${say(STREAM_RECORD_AGE_MAX)}: the mapping gives older ` +
        'records up without calling the function, so their age is never measured. Lower it.',
    ),
    ...between('clockDifference', thresholds.clockDifference, Duration.minutes(1), QUEUE_RETENTION_MAX, ''),
    ...counts.flatMap((name) =>
      unless(
        Number.isSafeInteger(thresholds[name]) && thresholds[name] >= 0,
        `${name} is ${thresholds[name]}, but must be a whole number from 0: how many in 5 minutes are no alarm.`,
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
