import { Duration } from 'aws-cdk-lib';
import { MailroomError } from '../lambdas/runtime/errors.ts';

/**
 * Refuses settings that cannot work.
 *
 * @throws `BAD_SETTINGS`, with every problem, when there is any
 */
export function refuse(what: string, problems: readonly string[]): void {
  if (problems.length === 0) return;
  const list =
    problems.length === 1 ? ` ${problems[0]}` : problems.map((problem) => `\n- ${problem}`).join('');
  throw new MailroomError('BAD_SETTINGS', `${what} cannot work:${list}`);
}

/** No problem when it fits, else the sentence. */
export function unless(fits: boolean, problem: string): string[] {
  return fits ? [] : [problem];
}

/** Refuses what is no whole number of the range. */
export function wholeNumber(
  property: string,
  value: number,
  min: number,
  max: number,
  why: string,
): string[] {
  return unless(
    Number.isSafeInteger(value) && value >= min && value <= max,
    `${property} is ${value}, but must be a whole number from ${min} to ${max}. ${why}`,
  );
}

/** Refuses a duration out of its range. */
export function between(
  property: string,
  value: Duration,
  min: Duration,
  max: Duration,
  why: string,
): string[] {
  const ms = value.toMilliseconds();
  return unless(
    ms >= min.toMilliseconds() && ms <= max.toMilliseconds(),
    `${property} is ${say(value)}, but must be from ${say(min)} to ${say(max)}. ${why}`.trimEnd(),
  );
}

/** Refuses what is no whole number of days: retentions that DynamoDB carries out are no finer. */
export function wholeDays(property: string, value: Duration): string[] {
  const days = value.toMilliseconds() / Duration.days(1).toMilliseconds();
  return unless(
    Number.isInteger(days) && days >= 1 && days <= 3_650,
    `${property} is ${say(value)}, but must be a whole number of days from 1 to 3650: DynamoDB deletes expired ` +
      'rows within days, so a finer value would promise too much. Round it up to days.',
  );
}

/** A duration in words. */
export function say(duration: Duration): string {
  return duration.toMilliseconds() === 0 ? '0 seconds' : duration.toHumanString();
}
