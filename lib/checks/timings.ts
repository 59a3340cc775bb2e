import { Duration } from 'aws-cdk-lib';
import { CLOCK_SKEW_MS } from '../../lambdas/runtime/base/clock.ts';
import { AT_ONCE_TIMEOUT_MAX_MS } from '../../lambdas/runtime/base/config.ts';
import { FRESH_MS } from '../../lambdas/runtime/relay/stream-settings.ts';
import { receiveProblems } from './receives.ts';
import { between, say, unless, wholeDays, wholeNumber } from './refusal.ts';
import { plus, type Retentions, retentionProblems } from './retentions.ts';

/**
 * Relations between timings that keep an event from being lost, duplicated or pushed into a dead-letter queue. Each check returns
 * one sentence per problem, so that a construct can report them all at once and a test can read each.
 */

/** Stream records older than this are published with a claim. */
const FRESH_MAX = Duration.millis(FRESH_MS);

/** The minimum by which a lease must exceed the publish timeout, so that slightly different clocks cannot make publishes overlap. */
const PUBLISH_MARGIN = Duration.millis(CLOCK_SKEW_MS);

/** The shortest lease of a message: it is renewed every third of it, i.e. every second. */
const LEASE_MIN = Duration.seconds(3);

/** The longest visibility timeout (SQS quotas). */
const VISIBILITY_MAX = Duration.hours(12);

/** The maximum batch size without a batching window (Lambda, event source mapping of SQS). */
export const BATCH_SIZE_MAX = 10;

/** The default limit of a consumer's concurrent invocations, and the smallest one (Lambda API reference, ScalingConfig). */
const CONCURRENCY_DEFAULT = 100;
const CONCURRENCY_MIN = 2;

/** The longest batching window of a stream's mapping: with a longer one, records would arrive too old to be published without a claim. */
const STREAM_WINDOW_MAX = Duration.seconds(3);

/** The longest batching window of a mapping (Lambda API reference, CreateEventSourceMapping). */
const WINDOW_MAX = Duration.minutes(5);

/** The longest run of a function (Lambda quotas). */
export const FUNCTION_TIMEOUT_MAX = Duration.minutes(15);

/** The longest run of a function on Lambda Managed Instances that a mapping of SQS invokes (Lambda guide, function timeout). */
export const MANAGED_TIMEOUT_MAX = Duration.minutes(90);

/** The shortest timeout of a consumer: no handler is started in the last 2 seconds of a run. */
const CONSUMER_TIMEOUT_MIN = Duration.seconds(3);

/** The shortest interval of an EventBridge schedule. */
export const SCHEDULE_MIN = Duration.minutes(1);

/** The longest interval between two sweeps: with a longer one, an event that the stream missed would wait too long. */
const SWEEP_EVERY_MAX = Duration.hours(1);

/** The settings of a relay that must be consistent with each other. */
export interface RelaySettings {
  readonly shards: number;
  readonly streamLease: Duration;
  readonly publishTimeout: Duration;
  readonly claimLease: Duration;
  readonly sweepEvery: Duration;
  readonly maxAttempts: number;
  readonly publishedRetention: Duration;
  /** Absent: no window. */
  readonly batchingWindow?: Duration | undefined;
}

/** The settings of a consumer that must be consistent with each other. */
export interface ConsumerSettings extends Retentions {
  readonly lease: Duration;
  readonly timeout: Duration;
  /** The longest timeout that Lambda has for the function. */
  readonly timeoutMax: Duration;
  readonly batchSize: number;
  /** Absent: no window. */
  readonly batchingWindow?: Duration | undefined;
}

/**
 * Validates a relay's settings.
 *
 * @returns one sentence per problem
 */
export function relayProblems(settings: RelaySettings): string[] {
  const { streamLease, publishTimeout, claimLease, sweepEvery } = settings;
  const bornMin = plus(FRESH_MAX, publishTimeout, PUBLISH_MARGIN);
  const claimMin = plus(publishTimeout, publishTimeout, PUBLISH_MARGIN);
  return [
    ...wholeNumber('shards', settings.shards, 1, 256, 'The shard is one byte of the event id.'),
    ...wholeNumber(
      'maxAttempts',
      settings.maxAttempts,
      1,
      1_000,
      'It is the number of times that publishing an event may fail because of the event itself.',
    ),
    ...between('publishTimeout', publishTimeout, Duration.millis(100), Duration.seconds(30), ''),
    ...between('streamLease', streamLease, Duration.seconds(1), FUNCTION_TIMEOUT_MAX, ''),
    ...between('claimLease', claimLease, Duration.seconds(1), FUNCTION_TIMEOUT_MAX, ''),
    ...wholeDays('publishedRetention', settings.publishedRetention),
    ...windowProblems('batchingWindow', settings.batchingWindow, STREAM_WINDOW_MAX),
    ...unless(
      streamLease.toMilliseconds() > bornMin.toMilliseconds(),
      `streamLease is ${say(streamLease)}, but must be more than ${say(bornMin)}: a record counts as fresh for ` +
        `${say(FRESH_MAX)}, one PutEvents call may take ${say(publishTimeout)}, and ${say(PUBLISH_MARGIN)} ` +
        'allow for clock differences. With less, the sweep would publish events that the stream relay is still publishing. ' +
        'Raise streamLease or lower publishTimeout.',
    ),
    ...unless(
      claimLease.toMilliseconds() > claimMin.toMilliseconds(),
      `claimLease is ${say(claimLease)}, but must be more than ${say(claimMin)}, twice the publish timeout plus ` +
        `${say(PUBLISH_MARGIN)} for clock differences: no publish may start that could outlast its claim, and a ` +
        'publish that hangs must be detected in time. Raise claimLease or lower publishTimeout.',
    ),
    ...sweepProblems(sweepEvery),
  ];
}

/** The longest turn of a producer after which the stream relay can still claim and publish within one claim lease. */
export function turnMax({
  claimLease,
  publishTimeout,
}: Pick<RelaySettings, 'claimLease' | 'publishTimeout'>): Duration {
  // The wait ends a clock margin after the turn, and another is left before the lease ends; a record's time is truncated to 1 s.
  const others = plus(publishTimeout, PUBLISH_MARGIN, PUBLISH_MARGIN, Duration.seconds(1)).toMilliseconds();
  return Duration.millis(Math.min(AT_ONCE_TIMEOUT_MAX_MS, Math.max(0, claimLease.toMilliseconds() - others)));
}

/**
 * Validates the turn of a producer that publishes at once.
 *
 * @param max - from {@link turnMax}
 * @returns one sentence per problem
 */
export function atOnceProblems(timeout: Duration, max: Duration): string[] {
  const why =
    'The transaction, PutEvents and the mark end in it. After a failure, the stream relay waits for its end, and must then claim ' +
    'and publish within its claimLease.';
  return between('publishAtOnce.timeout', timeout, Duration.millis(100), max, why);
}

function windowProblems(property: string, window: Duration | undefined, max: Duration): string[] {
  if (window === undefined) return [];
  return [
    ...between(property, window, Duration.seconds(0), max, ''),
    ...unless(
      window.toMilliseconds() % 1_000 === 0,
      `${property} is ${say(window)}, but must be whole seconds: Lambda has no finer windows. Round it.`,
    ),
  ];
}

function sweepProblems(sweepEvery: Duration): string[] {
  const ms = sweepEvery.toMilliseconds();
  const minute = SCHEDULE_MIN.toMilliseconds();
  const fits = ms >= 1_000 && ms <= SWEEP_EVERY_MAX.toMilliseconds() && (ms < minute || ms % minute === 0);
  return unless(
    fits,
    `sweepEvery is ${say(sweepEvery)}, but must be from 1 second to under a minute (the sweep then loops inside ` +
      `its minute), or a whole number of minutes up to ${say(SWEEP_EVERY_MAX)}: EventBridge runs a schedule ` +
      'at most once a minute. Round it to whole minutes.',
  );
}

/**
 * Validates a consumer's settings.
 *
 * @returns one sentence per problem
 */
export function consumerProblems(settings: ConsumerSettings): string[] {
  return [
    ...wholeNumber(
      'queue.batchSize',
      settings.batchSize,
      1,
      BATCH_SIZE_MAX,
      'This is the most that one SQS receive returns.',
    ),
    ...between(
      'function.timeout',
      settings.timeout,
      CONSUMER_TIMEOUT_MIN,
      settings.timeoutMax,
      "No handler is started in a function's last 2 seconds, and Lambda stops a function after 15 minutes, or after 90 on Lambda Managed " +
        'Instances: add a function to its capacity provider first, and pass it as function.existing.',
    ),
    ...windowProblems('queue.batchingWindow', settings.batchingWindow, WINDOW_MAX),
    ...receiveProblems(settings),
    ...visibilityProblems(settings),
    ...retentionProblems(settings),
  ];
}

function visibilityProblems({
  lease,
  timeout,
  visibilityTimeout,
  batchingWindow: window = Duration.seconds(0),
}: ConsumerSettings): string[] {
  return [
    ...between(
      'queue.visibilityTimeout',
      visibilityTimeout,
      Duration.seconds(1),
      VISIBILITY_MAX,
      'This is the range of SQS.',
    ),
    ...unless(
      visibilityTimeout.toMilliseconds() >= timeout.toMilliseconds(),
      `queue.visibilityTimeout is ${say(visibilityTimeout)}, but must be at least the function's timeout, ` +
        `${say(timeout)}. Otherwise SQS redelivers messages that the function is still processing, and Lambda refuses the ` +
        'mapping. Raise queue.visibilityTimeout (AWS advises 6 times the timeout) or lower function.timeout.',
    ),
    ...unless(
      window.toMilliseconds() === 0 ||
        visibilityTimeout.toMilliseconds() >= timeout.plus(window).toMilliseconds(),
      `queue.batchingWindow is ${say(window)}, but with the function's timeout, ${say(timeout)}, it must fit into ` +
        `queue.visibilityTimeout, ${say(visibilityTimeout)}: a message is hidden from the start of its window. Lower queue.batchingWindow or ` +
        'raise queue.visibilityTimeout.',
    ),
    ...unless(
      lease.toMilliseconds() >= LEASE_MIN.toMilliseconds(),
      `lease is ${say(lease)}, but must be at least ${say(LEASE_MIN)}: it is renewed every third of its length, and ` +
        'renewing more than once a second only costs writes. Raise lease; the default is 30 seconds.',
    ),
    ...unless(
      lease.toMilliseconds() <= visibilityTimeout.toMilliseconds(),
      `lease is ${say(lease)}, but must be at most the visibility timeout, ${say(visibilityTimeout)}. Otherwise, after ` +
        'a crash, the message is redelivered while its lease is still valid, and each such receive is ' +
        'wasted. Lower lease or raise queue.visibilityTimeout.',
    ),
  ];
}

/** The most concurrent invocations for a consumer's queue: by default 100, or the function's reserved concurrency if that is lower. */
export function maxConcurrencyOf(given?: number, reserved = CONCURRENCY_DEFAULT): number {
  return given ?? Math.max(CONCURRENCY_MIN, Math.min(CONCURRENCY_DEFAULT, reserved));
}

/**
 * Validates the concurrency of a consumer.
 *
 * @param reserved - the reserved concurrency of its function; `undefined` if none is known
 */
export function concurrencyProblems(given?: number, reserved?: number): string[] {
  const limit = maxConcurrencyOf(given, reserved);
  if (given === undefined)
    return unless(
      reserved === undefined || reserved >= CONCURRENCY_MIN,
      `reservedConcurrentExecutions is ${reserved}, but must be at least ${CONCURRENCY_MIN}, the least that an SQS mapping uses. Raise it or omit it.`,
    );
  return unless(
    reserved === undefined || limit <= reserved,
    `queue.maxConcurrency is ${limit}, but the function reserves ${reserved} concurrent executions: Lambda would throttle messages, and each ` +
      `throttle uses up a receive. Lower queue.maxConcurrency (at least ${CONCURRENCY_MIN}) or raise the function's reservedConcurrentExecutions.`,
  );
}
