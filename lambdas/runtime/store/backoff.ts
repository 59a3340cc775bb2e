import type { RandomBytes } from './event-id.ts';

/**
 * Returns the pause before the next try: exponential with full jitter, so that clients that failed together do not return
 * together.
 *
 * @param attempt - the attempt that failed, from 1
 * @returns milliseconds from `baseMs` / 2 to `capMs`
 */
export function backoffMs(attempt: number, baseMs: number, capMs: number, random: RandomBytes): number {
  const ceiling = Math.min(capMs, baseMs * 2 ** Math.min(attempt - 1, 30));
  return Math.round(ceiling / 2 + (ceiling / 2) * fraction(random));
}

/** Returns a random number from 0 to just below 1, for jitter. */
export function fraction(random: RandomBytes): number {
  return (random(1)[0] ?? 0) / 256;
}
