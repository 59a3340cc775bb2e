import { BEHIND_MAX_MS } from './aws-clock.ts';
import { clipped, detailedTable } from './output.ts';
import { paint } from './paint.ts';
import { prose } from './prose.ts';
import { duration } from './times.ts';

/**
 * A time relative to now; `now` if it is within the precision of the command's clock.
 *
 * @param at - epoch milliseconds; `null` if unknown
 */
export function when(at: number | null, now: number): string {
  if (at === null) return '?';
  if (Math.abs(at - now) <= BEHIND_MAX_MS) return 'now';
  return at > now ? `in ${duration(at - now)}` : `${duration(now - at)} ago`;
}

/** The time of a next attempt; `due` once it has passed. @param at - epoch milliseconds; `null` if unknown */
export function nextTime(at: number | null, now: number): string {
  return at !== null && at <= now ? 'due' : when(at, now);
}

/** The line below a list that was cut. */
export const MORE_LISTED = 'There are more: raise --limit, or group them with --by cause.';

/** The line below causes that were not counted completely. */
export const MORE_GROUPED = 'Not all messages were read: the counts are lower bounds.';

/** The line below an incomplete list. */
export function moreText(more: boolean, remedy: string): string {
  return more ? `\n${prose(paint.yellow(remedy))}` : '';
}

/** A failure with its cause and its time (epoch milliseconds); `null` if unknown. */
export interface CountedFailure {
  readonly fingerprint: string | null;
  readonly eventId: string;
  readonly at: number | null;
}

/** Failures of one cause. Times are epoch milliseconds, `null` if none of them has one. */
export interface Cause {
  readonly fingerprint: string | null;
  readonly count: number;
  readonly oldestAt: number | null;
  readonly newestAt: number | null;
  /** The event id of the newest. */
  readonly example: string;
}

/** Groups failures by cause, the most frequent first. */
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
  return causes.sort(mostFrequent);
}

/** A comparator for `sort`: the most frequent cause first, then that which failed last. */
export function mostFrequent(a: Cause, b: Cause): number {
  return b.count - a.count || newest({ at: a.newestAt }, { at: b.newestAt });
}

/** A comparator for `sort`: newest first, those without a time last. */
export function newest(a: { readonly at: number | null }, b: { readonly at: number | null }): number {
  return (b.at ?? -1) - (a.at ?? -1);
}

/** Causes as a table. */
export function causesText(causes: readonly Cause[], now: number): string {
  return detailedTable(
    ['count', 'oldest', 'newest', 'example'],
    causes.map(({ fingerprint, count, oldestAt, newestAt, example }) => ({
      cells: [count, when(oldestAt, now), when(newestAt, now), example],
      details: [fingerprintText(fingerprint)],
    })),
  );
}

/** The length at which `fingerprint` cuts a code and its message. A consumer's name or `relay` may precede them. */
const FINGERPRINT_MAX = 240;

/** A fingerprint as text; one that was cut ends with `…`. */
export function fingerprintText(fingerprint: string | null | undefined): string {
  const text = fingerprint ?? 'unknown cause';
  const lengths = [text.length, text.length - text.indexOf(' ') - 1];
  return clipped(lengths.includes(FINGERPRINT_MAX) ? `${text}…` : text);
}

/** The most entries of a {@link headedList} in text; `--json` has them all. */
const ENTRIES_MAX = 20;

/** A heading and an indented line for each entry; empty without entries. */
export function headedList(head: string, entries: readonly string[]): string {
  if (entries.length === 0) return '';
  const more =
    entries.length > ENTRIES_MAX ? [`and ${entries.length - ENTRIES_MAX} more: --json lists all`] : [];
  const lines = [...entries.slice(0, ENTRIES_MAX), ...more].map((entry) => prose(`  ${entry}`, 4));
  return [prose(head), ...lines].join('\n');
}
