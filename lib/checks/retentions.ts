import { Duration } from 'aws-cdk-lib';
import { longestInQueue, type ReceiveSettings } from './receives.ts';
import { between, say, unless, wholeDays } from './refusal.ts';

/**
 * Retention of messages, archived events and their inbox rows: a redelivered message must find its row, and a dead letter must
 * outlast a weekend.
 */

/** The minimum time that an operator has to look at a message: a dead letter of Friday is still there on Monday. */
const OPERATOR_TIME_MIN = Duration.days(3);

/** The default retention of an inbox row, unless the queues and the archive need more: two queues of 14 days, and a week. */
const INBOX_RETENTION = Duration.days(35);

/** The range of a queue's message retention (SQS quotas). */
const QUEUE_RETENTION_MIN = Duration.minutes(1);
export const QUEUE_RETENTION_MAX = Duration.days(14);

/** The settings of a consumer that determine how long something is kept or may take. */
export interface Retentions extends ReceiveSettings {
  readonly queueRetention: Duration;
  readonly deadLetterRetention: Duration;
  readonly inboxRetention: Duration;
  /** The retention of the archive, for replays. Absent: no archive. */
  readonly archive?: Duration | undefined;
}

/**
 * Validates a consumer's retentions.
 *
 * @returns one sentence per problem
 */
export function retentionProblems(settings: Retentions): string[] {
  const { queueRetention, deadLetterRetention, inboxRetention, archive } = settings;
  const longest = longestInQueue(settings);
  const deadLetterMin = plus(longest, OPERATOR_TIME_MIN);
  const inboxMin = inboxRetentionMin(settings);
  const range = 'This is the range of SQS.';
  return [
    ...between('queue.retention', queueRetention, QUEUE_RETENTION_MIN, QUEUE_RETENTION_MAX, range),
    ...between(
      'queue.deadLetterRetention',
      deadLetterRetention,
      QUEUE_RETENTION_MIN,
      QUEUE_RETENTION_MAX,
      range,
    ),
    ...wholeDays('inboxRetention', inboxRetention),
    ...unless(
      queueRetention.toMilliseconds() >= longest.toMilliseconds(),
      `queue.retention is ${say(queueRetention)}, but must be at least ${say(longest)}, the time that a message may spend in ` +
        'the queue: a day of waits (RetryLater), all its attempts, up to 11 hours apart, and an outage. SQS deletes older messages before they reach the dead-letter ' +
        'queue. Raise queue.retention, or lower retry.maxAttempts, retry.outageTolerance or queue.visibilityTimeout.',
    ),
    ...unless(
      deadLetterRetention.toMilliseconds() >= deadLetterMin.toMilliseconds(),
      `queue.deadLetterRetention is ${say(deadLetterRetention)}, but must be at least ${say(deadLetterMin)}: SQS counts a ` +
        `message's age from its first send, it may spend ${say(longest)} in the queue, and an operator needs ` +
        `${say(OPERATOR_TIME_MIN)} to look at it. Raise queue.deadLetterRetention, or lower retry.maxAttempts, ` +
        'retry.outageTolerance or queue.visibilityTimeout.',
    ),
    ...unless(
      inboxRetention.toMilliseconds() >= inboxMin.toMilliseconds(),
      archive === undefined
        ? `inboxRetention is ${say(inboxRetention)}, but must be at least queue.retention + queue.deadLetterRetention = ` +
            `${say(inboxMin)}: a message that is redelivered after its inbox row has expired could be processed twice. ` +
            'Raise inboxRetention or lower the retentions of the queues.'
        : `inboxRetention is ${say(inboxRetention)}, but must be at least queue.retention + queue.deadLetterRetention + ` +
            `the bus's archive = ${say(inboxMin)}: an event replayed after its inbox row has expired would run again, so ` +
            'it is rejected as too old, and a new consumer could not receive the whole archive. Raise ' +
            "inboxRetention (or omit it), or lower the Mailroom's archive.",
    ),
  ];
}

/** The minimum retention of an inbox row: the sum of all the ways in which its message can return, one after the other. */
function inboxRetentionMin(
  settings: Pick<Retentions, 'queueRetention' | 'deadLetterRetention' | 'archive'>,
): Duration {
  return plus(
    settings.queueRetention,
    settings.deadLetterRetention,
    ...(settings.archive === undefined ? [] : [settings.archive]),
  );
}

/** The default retention of inbox rows: 35 days, or the minimum that the queues and the archive need, if that is longer. */
export function defaultInboxRetention(
  settings: Pick<Retentions, 'queueRetention' | 'deadLetterRetention' | 'archive'>,
): Duration {
  const days = inboxRetentionMin(settings).toDays({ integral: false });
  return Duration.days(Math.max(INBOX_RETENTION.toDays(), Math.ceil(days)));
}

/** Validates the archive of a bus. */
export function archiveProblems(archive: Duration | undefined): string[] {
  if (archive === undefined) return [];
  const days = archive.toDays({ integral: false });
  return unless(
    Number.isInteger(days) && days >= 1,
    `archive is ${say(archive)}, but must be a whole number of days, at least 1: EventBridge keeps archived events ` +
      'for whole days. Round it up to days, or omit it for no archive.',
  );
}

/** Adds durations. */
export function plus(...durations: readonly Duration[]): Duration {
  return Duration.millis(durations.reduce((sum, duration) => sum + duration.toMilliseconds(), 0));
}
