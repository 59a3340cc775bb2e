import { setTimeout as pause } from 'node:timers/promises';
import { inject } from 'vitest';

const isLocal = inject('endpoint') !== '';

/**
 * Longer than any wait that the order system imposes (its retries, a lease, the next sweep), also on a busy machine. An account has
 * longer ones: a sweep a minute, counts of SQS and settings of EventBridge that lag.
 */
const DEADLINE_MS = isLocal ? 180_000 : 600_000;

/** Often enough to notice soon. An account charges for each look. */
const PAUSE_MS = isLocal ? 300 : 1_000;

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
  const deadline = performance.now() + DEADLINE_MS + moreMs;
  for (;;) {
    const start = performance.now();
    try {
      return await look();
    } catch (error) {
      const end = performance.now();
      if (end > deadline) throw error;
      // A look that takes long, as on a busy machine, leaves it to what it waits for.
      await pause(Math.max(PAUSE_MS, 2 * (end - start)));
    }
  }
}
