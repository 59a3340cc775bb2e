import { HOUR_MS } from '../../../../lambdas/runtime/base/units.ts';

/** As the alarm for an expiring dead letter, by default. */
const BROKEN_MS = 24 * HOUR_MS;

/** Three days: a long weekend. */
const LOOK_MS = 72 * HOUR_MS;

/**
 * The urgency of a permanent deletion.
 *
 * @param expiresAt - epoch milliseconds; `null`: it is kept until an operator decides
 *
 * @example
 * ```ts
 * urgencyOf(now + 3_600_000, now); // 'broken'
 * ```
 */
export function urgencyOf(expiresAt: number | null, now: number): 'ok' | 'look' | 'broken' {
  if (expiresAt === null || expiresAt - now >= LOOK_MS) return 'ok';
  return expiresAt - now < BROKEN_MS ? 'broken' : 'look';
}
