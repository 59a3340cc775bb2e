import { Duration } from 'aws-cdk-lib';
import { DELAY_MAX_MS, outageDelayMs } from '../lambdas/runtime/consume/retry-schedule.ts';
import { between, say, unless, wholeNumber } from './refusal.ts';

/**
 * How many receives a healthy message may need: its attempts, those that an outage spends, and a few more. What is left of
 * them never decides about a message: attempts are counted on its row. See ADR 18.
 */

/** The retry schedule that holds. */
export interface Retry {
  readonly attempts: number;
  readonly first: Duration;
  readonly longest: Duration;
}

/** What decides how often a message may be received. */
export interface ReceiveSettings {
  readonly retry: Retry;
  readonly outageTolerance: Duration;
  readonly visibilityTimeout: Duration;
}

/** The retry schedule of a consumer that chooses none. */
export const RETRY: Retry = {
  attempts: 10,
  first: Duration.seconds(2),
  longest: Duration.minutes(15),
};

/** The longest outage that a message survives, unless a consumer chooses another. */
export const OUTAGE_TOLERANCE = Duration.hours(4);

/**
 * Receives that are neither attempts nor an outage: a first run without a claim, two claims without a result that do not count,
 * two that found the message leased, nine that made room for another message of the batch, one that dead-letters it.
 */
export const SPARE_RECEIVES = 15;

/** The highest `maxReceiveCount` (SQS API reference, SetQueueAttributes). */
const RECEIVE_COUNT_MAX = 1_000;

/** More attempts than this are no schedule but a loop. */
const ATTEMPTS_MAX = 100;

/** The longest delay that Mailroom itself gives a message in an outage. */
const OUTAGE_DELAY_MAX = Duration.minutes(15);

/** After how many receives SQS moves a message to the dead-letter queue. */
export function maxReceiveCount({ retry, outageTolerance, visibilityTimeout }: ReceiveSettings): number {
  const outage = outageReceives(outageTolerance.toMilliseconds(), visibilityTimeout.toMilliseconds());
  return retry.attempts + SPARE_RECEIVES + outage;
}

/**
 * How many receives an outage spends at most: of a table that cannot be reached, by the delays of an outage at their shortest; of
 * a function that does not start, one for each visibility timeout.
 */
function outageReceives(outageMs: number, visibilityTimeoutMs: number): number {
  let receives = 0;
  for (let coveredMs = 0; coveredMs < outageMs; receives += 1) coveredMs += outageDelayMs(receives + 1, 1);
  return Math.max(receives, Math.ceil(outageMs / visibilityTimeoutMs));
}

/** The worst time that a message spends in its queue once it is being received, before SQS moves it. */
export function longestInQueue(settings: ReceiveSettings): Duration {
  const { retry, visibilityTimeout } = settings;
  const visibilityMs = visibilityTimeout.toMilliseconds();
  const others = maxReceiveCount(settings) - retry.attempts;
  // A handler may ask for the longest delay each time: see RetryLater.
  return Duration.millis(
    retry.attempts * Math.max(visibilityMs, DELAY_MAX_MS) +
      others * Math.max(visibilityMs, OUTAGE_DELAY_MAX.toMilliseconds()),
  );
}

/**
 * What is wrong with a retry schedule and the receives that follow from it.
 *
 * @returns a sentence for each fault; none when they fit
 */
export function receiveProblems(settings: ReceiveSettings): string[] {
  const { retry, outageTolerance, visibilityTimeout } = settings;
  const receives = maxReceiveCount(settings);
  return [
    ...wholeNumber(
      'retry.attempts',
      retry.attempts,
      1,
      ATTEMPTS_MAX,
      'It is how often the handler may fail.',
    ),
    ...between('retry.first', retry.first, Duration.seconds(1), Duration.millis(DELAY_MAX_MS), ''),
    ...between(
      'retry.longest',
      retry.longest,
      retry.first,
      Duration.millis(DELAY_MAX_MS),
      'It starts at retry.first, and SQS hides a message for 12 hours at most, of which the function may use some.',
    ),
    ...between('outageTolerance', outageTolerance, Duration.millis(0), Duration.days(3), ''),
    ...unless(
      receives <= RECEIVE_COUNT_MAX,
      `outageTolerance is ${say(outageTolerance)} and visibilityTimeout ${say(visibilityTimeout)}, which takes ${receives} ` +
        `receives; SQS counts ${RECEIVE_COUNT_MAX} at most, and each visibility timeout of an outage spends one. Raise ` +
        'visibilityTimeout, or lower outageTolerance or retry.attempts.',
    ),
  ];
}
