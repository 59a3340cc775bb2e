import { minuteOf } from '../store/event-id.ts';

/** A minute, milliseconds. */
export const MINUTE_MS = 60_000;

/**
 * At which ages, in minutes from a minute's end, the sweep reads it: each event is read six times, and what
 * commits late is met by a later age. The last one is the bound on how late that may be.
 */
export const SWEEP_AGES_MINUTES = [1, 4, 16, 64, 256, 1024] as const;

/** The oldest age, milliseconds. */
export const SWEEP_AGE_MAX_MS = Math.max(...SWEEP_AGES_MINUTES) * MINUTE_MS;

/**
 * Which minutes a sweep reads: those whose age passed one of {@link SWEEP_AGES_MINUTES} after `since` and no
 * later than `now`. A pure function of the two times: in steady state six minutes a pass, after a pause exactly
 * what the pause missed.
 *
 * @param since - epoch milliseconds, exclusive
 * @param now - epoch milliseconds, inclusive
 * @returns minutes as they stand in keys, oldest crossing first, each once
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
    // A minute ends at its start + 1 minute; its crossing is its end + age, which must lie in (since, now]. That of `first` is the
    // first after `since`.
    const first = Math.floor((since - ageMs) / MINUTE_MS) * MINUTE_MS;
    for (let minute = first; minute + MINUTE_MS + ageMs <= now; minute += MINUTE_MS) {
      crossings.push({ minute, at: minute + MINUTE_MS + ageMs });
    }
  }
  crossings.sort((a, b) => a.at - b.at || a.minute - b.minute);
  return [...new Set(crossings.map(({ minute }) => minuteOf(minute)))];
}

/** The minutes that no age has met yet: the running one and those before it, up to the first age. */
export function youngestMinutes(now: number): string[] {
  const running = Math.floor(now / MINUTE_MS) * MINUTE_MS;
  return [2, 1, 0].map((back) => minuteOf(running - back * MINUTE_MS));
}
