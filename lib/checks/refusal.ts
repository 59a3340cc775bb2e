import { Duration } from 'aws-cdk-lib';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { nameProblems } from '../../lambdas/runtime/base/given-names.ts';

/**
 * Throws if settings are invalid.
 *
 * @throws `BAD_SETTINGS`, listing every problem, if there is one
 */
export function refuse(what: string, problems: readonly string[]): void {
  if (problems.length === 0) return;
  const list =
    problems.length === 1 ? ` ${problems[0]}` : problems.map((problem) => `\n- ${problem}`).join('');
  throw new MailroomError('BAD_SETTINGS', `${what} has invalid settings:${list}`);
}

/**
 * Throws if required properties are missing, or others do not exist: before anything reads them.
 *
 * @throws `BAD_SETTINGS`, naming each of them
 */
export function refuseNames(
  what: string,
  props: object | undefined,
  names: Parameters<typeof nameProblems>[1],
): void {
  refuse(what, nameProblems(props, names));
}

/** Returns the problem unless the condition holds. */
export function unless(fits: boolean, problem: string): string[] {
  return fits ? [] : [problem];
}

/** Validates a whole number and its range. */
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

/** Validates a duration's range. */
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

/** Validates a whole number of days: DynamoDB's TTL is not more precise. */
export function wholeDays(property: string, value: Duration): string[] {
  const days = value.toMilliseconds() / Duration.days(1).toMilliseconds();
  return unless(
    Number.isInteger(days) && days >= 1 && days <= 3_650,
    `${property} is ${say(value)}, but must be a whole number of days from 1 to 3650: DynamoDB may take days to delete ` +
      'an expired row, so a finer value has no meaning. Round it up to days.',
  );
}

/** Validates the interval of a schedule. */
export function wholeMinutes(property: string, value: Duration): string[] {
  return unless(
    value.toMilliseconds() % Duration.minutes(1).toMilliseconds() === 0,
    `${property} is ${say(value)}, but must be a whole number of minutes: EventBridge runs a schedule at most once a minute.`,
  );
}

/** Formats a duration for people. */
export function say(duration: Duration): string {
  return duration.toMilliseconds() === 0 ? '0 seconds' : duration.toHumanString();
}
