import { Duration } from 'aws-cdk-lib';
import { CLOCK_SKEW_MS } from '../lambdas/runtime/clock.ts';
import { FRESH_MS } from '../lambdas/runtime/relay/relay-timings.ts';
import { receiveProblems } from './receives.ts';
import { between, say, unless, wholeDays, wholeNumber } from './refusal.ts';
import { plus, type Retentions, retentionProblems } from './retentions.ts';

/**
 * The relations between timings without which an event would be lost, doubled or walked into a dead-letter
 * queue. Each check answers with the sentences of what is wrong, so that a construct can refuse them all at once
 * and a test can read each.
 */

/** A record of the stream is published without a claim only while it is younger than this. */
const FRESH_MAX = Duration.millis(FRESH_MS);

/** What a lease must outlast the publish timeout by, so that clocks that differ a little cannot overlap. */
const PUBLISH_MARGIN = Duration.millis(CLOCK_SKEW_MS);

/** The shortest lease of a message: a third of it, one second, is how often it is renewed. */
const LEASE_MIN = Duration.seconds(3);

/** The longest visibility timeout (SQS quotas). */
const VISIBILITY_MAX = Duration.hours(12);

/** The most messages of one batch without a batching window (Lambda, event source mapping of SQS). */
export const BATCH_SIZE_MAX = 10;

/** The longest run of a function (Lambda quotas). */
export const FUNCTION_TIMEOUT_MAX = Duration.minutes(15);

/** The shortest timeout of a consumer: no handler is started in the last 2 seconds. */
const CONSUMER_TIMEOUT_MIN = Duration.seconds(3);

/** The shortest period of an EventBridge schedule. */
export const SCHEDULE_MIN = Duration.minutes(1);

/** The longest pause between two sweeps: a longer one would leave an event that the stream missed lying about. */
const SWEEP_EVERY_MAX = Duration.hours(1);

/** The settings of a relay that have to fit each other. */
export interface RelaySettings {
  readonly shards: number;
  readonly bornLease: Duration;
  readonly publishTimeout: Duration;
  readonly claimLease: Duration;
  readonly sweepEvery: Duration;
  readonly maxAttempts: number;
  readonly publishedRetention: Duration;
}

/** The settings of a consumer that have to fit each other. */
export interface ConsumerSettings extends Retentions {
  readonly lease: Duration;
  readonly timeout: Duration;
  readonly batchSize: number;
}

/**
 * What is wrong with a relay's settings.
 *
 * @returns a sentence for each fault; none when the settings fit
 */
export function relayProblems(settings: RelaySettings): string[] {
  const { bornLease, publishTimeout, claimLease, sweepEvery } = settings;
  const bornMin = plus(FRESH_MAX, publishTimeout, PUBLISH_MARGIN);
  const claimMin = plus(publishTimeout, publishTimeout, PUBLISH_MARGIN);
  return [
    ...wholeNumber('shards', settings.shards, 1, 256, 'The shard is one byte of the event id.'),
    ...wholeNumber(
      'maxAttempts',
      settings.maxAttempts,
      1,
      1_000,
      'It is how often an event itself may fail.',
    ),
    ...between('publishTimeout', publishTimeout, Duration.millis(100), Duration.seconds(30), ''),
    ...between('bornLease', bornLease, Duration.seconds(1), FUNCTION_TIMEOUT_MAX, ''),
    ...between('claimLease', claimLease, Duration.seconds(1), FUNCTION_TIMEOUT_MAX, ''),
    ...wholeDays('publishedRetention', settings.publishedRetention),
    ...unless(
      bornLease.toMilliseconds() > bornMin.toMilliseconds(),
      `bornLease is ${say(bornLease)}, but must be more than ${say(bornMin)}: a record counts as fresh for ` +
        `${say(FRESH_MAX)}, one PutEvents call may take ${say(publishTimeout)}, and ${say(PUBLISH_MARGIN)} are ` +
        'left for clocks that differ. With less, the sweep would publish what the stream is still publishing. ' +
        'Raise bornLease or lower publishTimeout.',
    ),
    ...unless(
      claimLease.toMilliseconds() > claimMin.toMilliseconds(),
      `claimLease is ${say(claimLease)}, but must be more than ${say(claimMin)}, twice the publish timeout and ` +
        `${say(PUBLISH_MARGIN)} for clocks that differ: no publish may start that could outlast its claim, and one ` +
        'that hung must leave time to be noticed. Raise claimLease or lower publishTimeout.',
    ),
    ...sweepProblems(sweepEvery),
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
      'once a minute at most. Round it to whole minutes.',
  );
}

/**
 * What is wrong with a consumer's settings.
 *
 * @returns a sentence for each fault; none when the settings fit
 */
export function consumerProblems(settings: ConsumerSettings): string[] {
  return [
    ...wholeNumber('batchSize', settings.batchSize, 1, BATCH_SIZE_MAX, 'It is what one SQS receive returns.'),
    ...between(
      'timeout',
      settings.timeout,
      CONSUMER_TIMEOUT_MIN,
      FUNCTION_TIMEOUT_MAX,
      "No handler is started in a function's last 2 seconds, and Lambda runs none for longer than 15 minutes.",
    ),
    ...receiveProblems(settings),
    ...visibilityProblems(settings),
    ...retentionProblems(settings),
  ];
}

function visibilityProblems({ lease, timeout, visibilityTimeout }: ConsumerSettings): string[] {
  return [
    ...between(
      'visibilityTimeout',
      visibilityTimeout,
      Duration.seconds(1),
      VISIBILITY_MAX,
      "It is SQS's range.",
    ),
    ...unless(
      visibilityTimeout.toMilliseconds() >= timeout.toMilliseconds(),
      `visibilityTimeout is ${say(visibilityTimeout)}, but must be at least the function's timeout, ` +
        `${say(timeout)}: else SQS hands out messages that the function still holds, and Lambda refuses the ` +
        'mapping. Raise visibilityTimeout (AWS advises 6 times the timeout) or lower timeout.',
    ),
    ...unless(
      lease.toMilliseconds() >= LEASE_MIN.toMilliseconds(),
      `lease is ${say(lease)}, but must be at least ${say(LEASE_MIN)}: it is renewed every third of it, and a ` +
        'renewal every second is the most that makes sense. Raise lease; 30 seconds is the default.',
    ),
    ...unless(
      lease.toMilliseconds() <= visibilityTimeout.toMilliseconds(),
      `lease is ${say(lease)}, but must be at most the visibility timeout, ${say(visibilityTimeout)}: else, after ` +
        'a crash, the message comes back while its lease still stands, and each such receive is spent for ' +
        'nothing. Lower lease or raise visibilityTimeout.',
    ),
  ];
}
