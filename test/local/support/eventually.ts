import { inject, vi } from 'vitest';

const isLocal = inject('endpoint') !== '';

/**
 * Longer than any wait that the order system imposes (its retries, a lease, the next sweep), also on a busy machine. An account has
 * longer ones: a sweep a minute, counts of SQS and settings of EventBridge that lag.
 */
const DEADLINE_MS = isLocal ? 180_000 : 600_000;

/** Often enough to notice soon, seldom enough to leave the engine to its work. An account charges for each look. */
const LOOK_EVERY_MS = isLocal ? 300 : 1_000;

/**
 * Waits until what a test says holds: it looks, and looks again, until nothing is thrown.
 *
 * @param look - reads and expects; what it returns is handed on
 * @param moreMs - what the deployed system itself takes, in addition. @default 0
 * @throws what `look` threw last, once the deadline has passed
 *
 * @example
 * ```ts
 * const row = await eventually(async () => {
 *   const found = await system.message('payments', eventId);
 *   expect(found?.status).toBe('PROCESSED');
 *   return found;
 * });
 * ```
 */
export async function eventually<T>(look: () => Promise<T>, moreMs = 0): Promise<T> {
  return vi.waitFor(look, { timeout: DEADLINE_MS + moreMs, interval: LOOK_EVERY_MS });
}
