import type { Telemetry } from '../telemetry.ts';
import { type BusBreaker, createBusBreaker } from './bus-breaker.ts';

/** What one partition was left with. */
export interface Left {
  /** Rows left PENDING. */
  readonly rows: number;
  /** Those of them whose source is undeclared: they have an alarm of their own and would only hide the age of the others. */
  readonly undeclared: number;
  /** When the oldest of the others was minted, epoch milliseconds. */
  readonly oldest: number;
  /** When the first of the leases ended, or will end, under which this pass leaves them, epoch milliseconds. */
  readonly leaseUntil: number;
}

/** What one pass counts as it goes. */
export interface Tally {
  published: number;
  /** Steps that failed, and that the next pass repeats. */
  failures: number;
  /** By partition, where there is something left: one that is read twice counts once. */
  readonly left: Map<string, Left>;
  readonly breaker: BusBreaker;
  /** When the work must be over, epoch milliseconds. */
  endsBy: number;
  /** No publish begins after this: it and its mark must be over when the invocation ends. */
  readonly lastPublishAt: number;
}

/** Work stops this long before the invocation's end, so that the last publish and its mark are over. */
export const END_MARGIN_MS = 10_000;

/** What a mark may take, milliseconds. */
const MARK_MS = 3_000;

/**
 * Begins to count.
 *
 * @param endsBy - when the work must be over, epoch milliseconds
 * @param publishTimeoutMs - what one call to the bus may take
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

/** Whether there is time for more, and a bus that takes it. */
export function goesOn(tally: Tally, now: number): boolean {
  return !tally.breaker.isGivenUp() && hasTime(tally, now);
}

/** Whether there is time for more. */
export function hasTime(tally: Tally, now: number): boolean {
  return now < tally.endsBy - END_MARGIN_MS;
}

/**
 * Does one step of the pass. A failure is reported, and the pass goes on with the next step, so that newer minutes are not held
 * up.
 *
 * @returns whether it was done
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
