import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { InvalidArgument } from './arguments.ts';
import { BEHIND_MAX_MS } from './aws-clock.ts';
import { duration, time } from './times.ts';

/** `--since` and `--at`. */
export interface WindowOptions {
  /** Milliseconds. */
  readonly since: number;
  /** The time that was meant, given the current time; both in epoch milliseconds. */
  readonly at?: (now: number) => number;
}

/** A range of time to read, epoch milliseconds. */
export interface TimeWindow {
  readonly since: number;
  readonly until: number;
  /** The range in words: `in the last 1 h`, or `from … to …`. */
  readonly text: string;
}

const CLOCK_TIME = /^([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?$/;
const ISO_TIME = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?$/i;

/**
 * Reads a time: `14:00` is the last 14:00 that has passed; also `2026-11-22T14:00`, with a zone or in local time.
 *
 * @returns a function from the current time to the time, both in epoch milliseconds
 */
export function timeArgument(text: string): (now: number) => number {
  const [, hours, minutes, seconds = '0'] = CLOCK_TIME.exec(text) ?? [];
  if (hours !== undefined) {
    return (now) => {
      const at = new Date(now);
      at.setHours(Number(hours), Number(minutes), Number(seconds), 0);
      if (at.getTime() > now) at.setDate(at.getDate() - 1);
      return at.getTime();
    };
  }
  const at = ISO_TIME.test(text) ? Date.parse(text.replace(' ', 'T')) : Number.NaN;
  if (Number.isNaN(at)) {
    throw new InvalidArgument(
      'Expected a time such as 14:00 (local, today or yesterday) or 2026-11-22T14:00Z.',
    );
  }
  return () => at;
}

/**
 * The range of time that the options select. Without `--at` it ends now.
 *
 * @throws `BAD_ARGUMENT` if `--at` is in the future
 */
export function windowOf({ since, at }: WindowOptions, now: number): TimeWindow {
  // The command's clock may be behind AWS's.
  const end = now + BEHIND_MAX_MS;
  if (at === undefined) return { since: now - since, until: end, text: `in the last ${duration(since)}` };
  const middle = at(now);
  if (middle > end) {
    throw new MailroomError(
      'BAD_ARGUMENT',
      `--at is ${time(middle)}, which is in the future: it is ${time(now)}.`,
    );
  }
  const until = Math.min(middle + since, end);
  return { since: middle - since, until, text: `from ${time(middle - since)} to ${time(until)}` };
}

/**
 * The range around `--at`, or around now: it includes scheduled events that are not due yet.
 *
 * @throws as {@link windowOf}
 */
export function windowAround(options: WindowOptions, now: number): TimeWindow {
  const { since } = windowOf(options, now);
  const until = since + 2 * options.since;
  const range = `from ${time(since)} to ${time(until)}`;
  return {
    since,
    until,
    text: options.at === undefined ? `within ${duration(options.since)} of now` : range,
  };
}
