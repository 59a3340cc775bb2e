/** The TTL attribute, epoch **seconds**. Only on rows that need no further work. */
export const EXPIRES_AT = 'expiresAt';

const DAY_S = 86_400;

/** Returns the TTL value of a row that may be deleted `days` days after `now`. */
export function expiresAt(now: number, days: number): number {
  return Math.ceil(now / 1_000) + days * DAY_S;
}
