import { Duration } from 'aws-cdk-lib';
import { longestInQueue, type ReceiveSettings } from './receives.ts';
import { between, say, unless, wholeDays } from './refusal.ts';

/**
 * How long messages, archived events and the inbox rows that remember them are kept: what comes back must find its row,
 * and what died must wait for somebody.
 */

/** What an operator must have left to look at a message, at the least: what died on a Friday is there on Monday. */
const OPERATOR_TIME_MIN = Duration.days(3);

/** How long an inbox row is kept unless the queues and the archive need more: two queues of 14 days, and a week. */
const INBOX_RETENTION = Duration.days(35);

/** The shortest and the longest time that a queue keeps a message (SQS quotas). */
const QUEUE_RETENTION_MIN = Duration.minutes(1);
export const QUEUE_RETENTION_MAX = Duration.days(14);

/** What of a consumer's settings says how long something is kept, or may take. */
export interface Retentions extends ReceiveSettings {
  readonly queueRetention: Duration;
  readonly deadLetterRetention: Duration;
  readonly inboxRetention: Duration;
  /** For how long the bus can replay an event. Absent: not at all. */
  readonly archive?: Duration | undefined;
}

/**
 * What is wrong with what a consumer keeps.
 *
 * @returns a sentence for each fault; none when the retentions fit
 */
export function retentionProblems(settings: Retentions): string[] {
  const { queueRetention, deadLetterRetention, inboxRetention, archive } = settings;
  const longest = longestInQueue(settings);
  const deadLetterMin = plus(longest, OPERATOR_TIME_MIN);
  const inboxMin = inboxRetentionMin(settings);
  const range = "It is SQS's range.";
  return [
    ...between('queueRetention', queueRetention, QUEUE_RETENTION_MIN, QUEUE_RETENTION_MAX, range),
    ...between('deadLetterRetention', deadLetterRetention, QUEUE_RETENTION_MIN, QUEUE_RETENTION_MAX, range),
    ...wholeDays('inboxRetention', inboxRetention),
    ...unless(
      queueRetention.toMilliseconds() >= longest.toMilliseconds(),
      `queueRetention is ${say(queueRetention)}, but must be at least ${say(longest)}, the time that a message may spend in ` +
        'the queue: all its attempts, up to 11 hours apart (RetryLater), and an outage. SQS deletes what is older, and it would never reach the dead-letter ' +
        'queue. Raise queueRetention, or lower retry.attempts, outageTolerance or visibilityTimeout.',
    ),
    ...unless(
      deadLetterRetention.toMilliseconds() >= deadLetterMin.toMilliseconds(),
      `deadLetterRetention is ${say(deadLetterRetention)}, but must be at least ${say(deadLetterMin)}: SQS counts a ` +
        `message's age from its first send, it may spend ${say(longest)} in the queue, and an operator needs ` +
        `${say(OPERATOR_TIME_MIN)} to look at it. Raise deadLetterRetention, or lower retry.attempts, ` +
        'outageTolerance or visibilityTimeout.',
    ),
    ...unless(
      inboxRetention.toMilliseconds() >= inboxMin.toMilliseconds(),
      archive === undefined
        ? `inboxRetention is ${say(inboxRetention)}, but must be at least queueRetention + deadLetterRetention = ` +
            `${say(inboxMin)}: a message that comes back after its inbox row has gone could be processed twice. ` +
            'Raise inboxRetention or lower the retentions of the queues.'
        : `inboxRetention is ${say(inboxRetention)}, but must be at least queueRetention + deadLetterRetention + ` +
            `the bus's archive = ${say(inboxMin)}: an event replayed after its inbox row has gone would run again, so ` +
            'it is rejected as too old, and a new consumer could not be given all that the archive holds. Raise ' +
            "inboxRetention (or leave it out), or lower the Mailroom's archive.",
    ),
  ];
}

/** What an inbox row must outlast: every way in which its message can come back, one after the other. */
function inboxRetentionMin(
  settings: Pick<Retentions, 'queueRetention' | 'deadLetterRetention' | 'archive'>,
): Duration {
  return plus(
    settings.queueRetention,
    settings.deadLetterRetention,
    ...(settings.archive === undefined ? [] : [settings.archive]),
  );
}

/** How long inbox rows are kept when nobody says: 35 days, or what the queues and the archive need, if that is more. */
export function defaultInboxRetention(
  settings: Pick<Retentions, 'queueRetention' | 'deadLetterRetention' | 'archive'>,
): Duration {
  const days = inboxRetentionMin(settings).toDays({ integral: false });
  return Duration.days(Math.max(INBOX_RETENTION.toDays(), Math.ceil(days)));
}

/** What is wrong with the archive of a bus. */
export function archiveProblems(archive: Duration | undefined): string[] {
  if (archive === undefined) return [];
  const days = archive.toDays({ integral: false });
  return unless(
    Number.isInteger(days) && days >= 1,
    `archive is ${say(archive)}, but must be a whole number of days, 1 at least: EventBridge keeps archived events ` +
      'by the day. Round it up to days, or leave it out for no archive.',
  );
}

/** The sum of durations. */
export function plus(...durations: readonly Duration[]): Duration {
  return Duration.millis(durations.reduce((sum, duration) => sum + duration.toMilliseconds(), 0));
}
