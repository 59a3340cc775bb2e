import type { SweepRange, SweepRangeReport } from '../lambdas/runtime/relay/sweep-range.ts';

/** Calls in a row that neither came further nor published anything: then the sweep is stuck. */
const IDLE_CALLS_MAX = 2;

/**
 * Sweeps a range, call after call, until it is done, or nothing goes forward any more, or it is asked to stop.
 *
 * @param call - one call of the sweep function
 * @param progress - told after each call how far it is
 * @returns the sum of all calls
 */
export async function sweepWhole(
  call: (range: SweepRange) => Promise<SweepRangeReport>,
  range: SweepRange,
  progress: (report: SweepRangeReport) => void,
  signal?: AbortSignal,
): Promise<SweepRangeReport> {
  let sum: SweepRangeReport = { published: 0, pending: 0, sweptTo: range.since, complete: false };
  for (let idle = 0; !sum.complete && idle < IDLE_CALLS_MAX && !signal?.aborted; ) {
    const { published, pending, sweptTo, complete } = await call({ ...range, since: sum.sweptTo });
    idle = published === 0 && sweptTo === sum.sweptTo ? idle + 1 : 0;
    sum = { published: sum.published + published, pending: sum.pending + pending, sweptTo, complete };
    progress(sum);
  }
  return sum;
}
