import { Duration } from 'aws-cdk-lib';
import { DELAY_MAX_MS, outageDelayMs, WAITS_MAX_MS } from '../../lambdas/runtime/base/retry-schedule.ts';
import { between, say, unless, wholeNumber } from './refusal.ts';

/**
 * Computes how many receives a healthy message may need: its attempts, those spent in an outage, and a small reserve. Unused
 * receives have no effect: attempts are counted on the inbox row. See ADR 18.
 */

/** A retry schedule with its defaults filled in. */
export interface Retry {
  readonly maxAttempts: number;
  readonly first: Duration;
  readonly longest: Duration;
}

/** Settings that determine how often a message may be received. */
export interface ReceiveSettings {
  readonly retry: Retry;
  readonly outageTolerance: Duration;
  readonly visibilityTimeout: Duration;
}

/** The default retry schedule. */
export const RETRY: Retry = {
  maxAttempts: 10,
  first: Duration.seconds(2),
  longest: Duration.minutes(15),
};

/** The default outage tolerance. */
export const OUTAGE_TOLERANCE = Duration.hours(4);

/**
 * Receives that are neither attempts nor an outage: a first run without a claim, two claims without a result that do not count,
 * two that found the message leased, nine that made room for another message of the batch, one that dead-letters it.
 */
const SPARE_RECEIVES = 15;

/** The maximum `maxReceiveCount` (SQS API reference, SetQueueAttributes). */
const RECEIVE_COUNT_MAX = 1_000;

/** More attempts than this are a loop rather than a schedule. */
const ATTEMPTS_MAX = 100;

/** The longest delay that Mailroom itself sets on a message during an outage. */
const OUTAGE_DELAY_MAX = Duration.minutes(15);

/** The number of receives after which SQS moves a message to the dead-letter queue. */
export function maxReceiveCount({ retry, outageTolerance, visibilityTimeout }: ReceiveSettings): number {
  const outage = outageReceives(outageTolerance.toMilliseconds(), visibilityTimeout.toMilliseconds());
  return retry.maxAttempts + SPARE_RECEIVES + outage;
}

/**
 * The maximum number of receives that an outage uses up: while the table cannot be reached, one per shortest outage delay; while
 * the function does not start, one per visibility timeout.
 */
function outageReceives(outageMs: number, visibilityTimeoutMs: number): number {
  let receives = 0;
  for (let coveredMs = 0; coveredMs < outageMs; receives += 1) coveredMs += outageDelayMs(receives + 1, 1);
  return Math.max(receives, Math.ceil(outageMs / visibilityTimeoutMs));
}

/** The time that a strict message waits for its predecessor before its last receive: 1, 2, 4 … 60 seconds after each receive. */
export function strictWait(receives: number): Duration {
  const waits = Array.from({ length: receives - 1 }, (_, index) => Math.min(60, 2 ** index));
  return Duration.seconds(waits.reduce((sum, each) => sum + each, 0));
}

/** The longest time that a message may spend in its queue, from its first receive until SQS moves it. */
export function longestInQueue(settings: ReceiveSettings): Duration {
  const { retry, visibilityTimeout } = settings;
  const visibilityMs = visibilityTimeout.toMilliseconds();
  const others = maxReceiveCount(settings) - retry.maxAttempts;
  // A handler may request the longest delay each time, and its waits count no attempt at first: see RetryLater.
  return Duration.millis(
    WAITS_MAX_MS +
      retry.maxAttempts * Math.max(visibilityMs, DELAY_MAX_MS) +
      others * Math.max(visibilityMs, OUTAGE_DELAY_MAX.toMilliseconds()),
  );
}

/**
 * Validates a retry schedule and the receives derived from it.
 *
 * @returns one sentence per problem
 */
export function receiveProblems(settings: ReceiveSettings): string[] {
  const { retry, outageTolerance, visibilityTimeout } = settings;
  const receives = maxReceiveCount(settings);
  return [
    ...wholeNumber(
      'retry.maxAttempts',
      retry.maxAttempts,
      1,
      ATTEMPTS_MAX,
      'It is the number of times that the handler may fail.',
    ),
    ...between('retry.first', retry.first, Duration.seconds(1), Duration.millis(DELAY_MAX_MS), ''),
    ...between(
      'retry.longest',
      retry.longest,
      retry.first,
      Duration.millis(DELAY_MAX_MS),
      'The delays start at retry.first. SQS hides a message for at most 12 hours, including the run of the function.',
    ),
    ...between('retry.outageTolerance', outageTolerance, Duration.millis(0), Duration.days(3), ''),
    ...unless(
      receives <= RECEIVE_COUNT_MAX,
      `retry.outageTolerance is ${say(outageTolerance)} and queue.visibilityTimeout is ${say(visibilityTimeout)}, which takes ${receives} ` +
        `receives. SQS allows at most ${RECEIVE_COUNT_MAX}, and an outage uses one per visibility timeout. Raise ` +
        'queue.visibilityTimeout, or lower retry.outageTolerance or retry.maxAttempts.',
    ),
  ];
}
