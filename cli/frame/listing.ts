import { duration } from './output.ts';
import { paint } from './paint.ts';

/** A time as it stands in a list: how long ago, or in how long. @param at - epoch milliseconds; `null` when it is not known */
export function when(at: number | null, now: number): string {
  if (at === null) return '?';
  return at > now ? `in ${duration(at - now)}` : `${duration(now - at)} ago`;
}

/** What stands under a list that does not show everything. */
export function moreText(more: boolean): string {
  return more
    ? `\n${paint.yellow('There are more. Show them with --limit, or group them with --by cause.')}`
    : '';
}
