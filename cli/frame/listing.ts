import { BEHIND_MAX_MS } from './aws-clock.ts';
import { duration } from './output.ts';
import { paint } from './paint.ts';

/**
 * A time in a list: how long ago, or in how long; `now` where the command's clock cannot tell which of the two.
 *
 * @param at - epoch milliseconds; `null` when it is not known
 */
export function when(at: number | null, now: number): string {
  if (at === null) return '?';
  if (Math.abs(at - now) <= BEHIND_MAX_MS) return 'now';
  return at > now ? `in ${duration(at - now)}` : `${duration(now - at)} ago`;
}

/** What to do about a list that was cut. */
export const MORE_LISTED = 'There are more. Show them with --limit, or group them with --by cause.';

/** Of causes that were counted in a part only. */
export const MORE_GROUPED = 'There are more than are read for this: the counts are lower bounds.';

/** What stands under a list that does not show everything. */
export function moreText(more: boolean, remedy: string): string {
  return more ? `\n${paint.yellow(remedy)}` : '';
}
