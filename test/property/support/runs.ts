import { createHash } from 'node:crypto';
import type { RandomBytes } from '../../../lambdas/runtime/store/event-id.ts';

/**
 * How often a law is tried. `PROPERTY_TIMES=20` tries each of them twenty times as often; `PROPERTY_SEED` repeats
 * a whole run, as the seed that a failure prints repeats one law.
 */
export function runs(usual: number): { readonly numRuns: number; readonly seed?: number } {
  const { PROPERTY_TIMES = '1', PROPERTY_SEED } = process.env;
  const numRuns = Math.ceil(usual * Number(PROPERTY_TIMES));
  return PROPERTY_SEED === undefined ? { numRuns } : { numRuns, seed: Number(PROPERTY_SEED) };
}

/** Random bytes that are the same for the same seed, so that a counterexample can be run again. */
export function seededBytes(seed: number): RandomBytes {
  let call = 0;
  return (count) => {
    call += 1;
    return createHash('sha256').update(`${seed}:${call}`).digest().subarray(0, count);
  };
}
