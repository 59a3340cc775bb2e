import type { Telemetry } from '../observe/telemetry.ts';
import type { LeftPending } from '../store/outbox-row.ts';
import { type BusBreaker, createBusBreaker } from './bus-breaker.ts';

/** The running counts of one pass. */
export interface Tally {
  published: number;
  /** The number of steps that failed, and that the next pass repeats. */
  failures: number;
  /** Rows left, by partition: a partition that is read twice counts once. */
  readonly left: Map<string, LeftPending>;
  readonly breaker: BusBreaker;
  /** The time by which the work must end, epoch milliseconds. */
  endsBy: number;
  /** No publish starts after this time: the publish and its mark must end before the invocation does. */
  readonly lastPublishAt: number;
}

/** Work stops this long before the invocation ends, so that the last publish and its mark can finish, milliseconds. */
export const END_MARGIN_MS = 10_000;

/** The time reserved for a mark, milliseconds. */
const MARK_MS = 3_000;

/**
 * Starts a tally.
 *
 * @param endsBy - the time by which the work must end, epoch milliseconds
 * @param publishTimeoutMs - the timeout of one call to the bus
 */
export function newTally(endsBy: number, publishTimeoutMs: number): Tally {
  return {
    published: 0,
    failures: 0,
    left: new Map(),
    breaker: createBusBreaker(),
    endsBy,
    lastPublishAt: endsBy - publishTimeoutMs - MARK_MS,
  };
}

/** Returns true while there is time and the bus accepts events. */
export function hasTimeLeft(tally: Tally, now: number): boolean {
  return !tally.breaker.isStopped() && hasTime(tally, now);
}

/** Returns true while there is time. */
export function hasTime(tally: Tally, now: number): boolean {
  return now < tally.endsBy - END_MARGIN_MS;
}

/**
 * Runs one step of the pass. A failure is reported, and the pass continues with the next step, so that newer minutes are not
 * held up.
 *
 * @returns true if the step succeeded
 */
export async function attemptStep(
  telemetry: Telemetry,
  tally: Tally,
  step: string,
  work: () => Promise<unknown>,
): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    tally.failures += 1;
    telemetry.count('SweepFailures');
    telemetry.log.error('A step of the sweep failed; the next pass repeats it', {
      step,
      error: error as Error,
    });
    return false;
  }
}
