/** The TTL attribute, epoch **seconds**. Only on rows that need no further work. */
export const EXPIRES_AT = 'expiresAt';

const DAY_S = 86_400;

/** Returns the TTL value of a row that may be deleted `days` days after `now`. */
export function expiresAt(now: number, days: number): number {
  return Math.ceil(now / 1_000) + days * DAY_S;
}

/**
 * The time for which a row outlives its retention, days. A repeat is judged when it is received, and its handler may commit 15 minutes
 * later (Lambda's longest timeout), by a clock that is behind: the row must still be there.
 */
export const SPARE_DAYS = 1;

/**
 * Returns the TTL value of a message that is final, epoch seconds.
 *
 * @param now - the time at which it became final, epoch milliseconds
 */
export function inboxExpiresAt(now: number, inboxRetentionDays: number): number {
  return expiresAt(now, inboxRetentionDays + SPARE_DAYS);
}
