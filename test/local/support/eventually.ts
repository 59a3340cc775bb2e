import { vi } from 'vitest';

/** Longer than any wait that the order system imposes (its retries, a lease, the next sweep), also on a busy machine. */
const DEADLINE_MS = 60_000;

/** Often enough to notice soon, seldom enough to leave the engine to its work. */
const LOOK_EVERY_MS = 300;

/**
 * Waits until what a test says holds: it looks, and looks again, until nothing is thrown.
 *
 * @param look - reads and expects; what it returns is handed on
 * @param moreMs - what the deployed system itself takes, in addition. @default 0
 * @throws what `look` threw last, once the deadline of a minute has passed
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
