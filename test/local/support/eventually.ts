import { vi } from 'vitest';

/**
 * Longer than any wait that the order system imposes (the next sweep; a queue's visibility timeout of 180 s after a crash), by
 * so much that no machine is too slow.
 */
const DEADLINE_MS = 600_000;

/** Often enough to notice soon, seldom enough to leave the engine to its work. */
const LOOK_EVERY_MS = 300;

/**
 * Waits until what a test says holds: it looks, and looks again, until nothing is thrown.
 *
 * @param look - reads and expects; what it returns is handed on
 * @throws what `look` threw last, once the deadline of ten minutes has passed
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
export async function eventually<T>(look: () => Promise<T>): Promise<T> {
  return vi.waitFor(look, { timeout: DEADLINE_MS, interval: LOOK_EVERY_MS });
}
