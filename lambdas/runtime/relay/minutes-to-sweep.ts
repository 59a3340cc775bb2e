import { MINUTE_MS } from '../base/units.ts';
import { minuteOf } from '../store/event-id.ts';

/**
 * The ages, in minutes after a minute's end, at which the sweep reads that minute. Each event is therefore read six times, and
 * a later age catches late commits. The last age is the maximum lateness that the sweep covers.
 */
export const SWEEP_AGES_MINUTES = [1, 4, 16, 64, 256, 1024] as const;

/** The oldest age, milliseconds. */
export const SWEEP_AGE_MAX_MS = Math.max(...SWEEP_AGES_MINUTES) * MINUTE_MS;

/**
 * Returns the minutes to sweep: those whose age passed one of {@link SWEEP_AGES_MINUTES} after `since` and no later than `now`. A
 * pure function of the two times: in steady state six minutes per pass, after a pause exactly the minutes that were missed.
 *
 * @param since - epoch milliseconds, exclusive
 * @param now - epoch milliseconds, inclusive
 * @returns minutes in the format of the keys, earliest crossing first, without duplicates
 *
 * @example
 * ```ts
 * minutesToSweep(Date.UTC(2026, 0, 1, 0, 2), Date.UTC(2026, 0, 1, 0, 3));
 * // ['2026-01-01T00:01', '2025-12-31T23:58', …]
 * ```
 */
export function minutesToSweep(since: number, now: number): string[] {
  const crossings: { readonly minute: number; readonly at: number }[] = [];
  for (const age of SWEEP_AGES_MINUTES) {
    const ageMs = age * MINUTE_MS;
    // A minute ends at its start + 1 minute; its crossing, its end + age, must be in (since, now]. `first` has the first crossing
    // after `since`.
    const first = Math.floor((since - ageMs) / MINUTE_MS) * MINUTE_MS;
    for (let minute = first; minute + MINUTE_MS + ageMs <= now; minute += MINUTE_MS) {
      crossings.push({ minute, at: minute + MINUTE_MS + ageMs });
    }
  }
  crossings.sort((a, b) => a.at - b.at || a.minute - b.minute);
  return [...new Set(crossings.map(({ minute }) => minuteOf(minute)))];
}

/** The minutes that have not reached the first age yet: the current one and those before it. */
export function youngestMinutes(now: number): string[] {
  const running = Math.floor(now / MINUTE_MS) * MINUTE_MS;
  return [2, 1, 0].map((back) => minuteOf(running - back * MINUTE_MS));
}
