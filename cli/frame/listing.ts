import { BEHIND_MAX_MS } from './aws-clock.ts';
import { clipped, duration, table } from './output.ts';
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

/** Something that failed of a cause, at a time (epoch milliseconds); `null` when the time is not known. */
export interface CountedFailure {
  readonly fingerprint: string | null;
  readonly eventId: string;
  readonly at: number | null;
}

/** Failures of one cause. Times are epoch milliseconds, `null` when none of them has one. */
export interface Cause {
  readonly fingerprint: string | null;
  readonly count: number;
  readonly oldestAt: number | null;
  readonly newestAt: number | null;
  /** The event id of the newest. */
  readonly example: string;
}

/** Failures by cause, the most frequent first. */
export function byCause(failures: readonly CountedFailure[]): Cause[] {
  const groups = new Map<string | null, CountedFailure[]>();
  for (const failure of failures) {
    const group = groups.get(failure.fingerprint) ?? [];
    group.push(failure);
    groups.set(failure.fingerprint, group);
  }
  const causes = [...groups].map(([fingerprint, group]): Cause => {
    const newestFirst = group.toSorted(newest);
    const times = newestFirst.flatMap(({ at }) => at ?? []);
    return {
      fingerprint,
      count: group.length,
      oldestAt: times.at(-1) ?? null,
      newestAt: times[0] ?? null,
      example: newestFirst[0]?.eventId ?? '',
    };
  });
  return causes.sort((a, b) => b.count - a.count || newest({ at: a.newestAt }, { at: b.newestAt }));
}

/** The newest first, and those without a time last: what `sort` takes. */
export function newest(a: { readonly at: number | null }, b: { readonly at: number | null }): number {
  return (b.at ?? -1) - (a.at ?? -1);
}

/** Causes for people. */
export function causesText(causes: readonly Cause[], now: number): string {
  return table(
    ['count', 'oldest', 'newest', 'cause', 'an example'],
    causes.map(({ fingerprint, count, oldestAt, newestAt, example }) => [
      count,
      when(oldestAt, now),
      when(newestAt, now),
      clipped(fingerprint ?? 'not known'),
      example,
    ]),
  );
}
