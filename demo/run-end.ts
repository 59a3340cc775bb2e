/** A run without any progress for this long is stuck: longer than a stream lease and two sweeps. */
const STUCK_MS = 150_000;

/** The faults that were made on purpose during a run. */
export type MadeFaults = 'none' | 'broken' | 'repaired';

/** The state of a run. */
interface RunState {
  /** True if every order has settled and the queues are empty. */
  readonly isAtRest: boolean;
  /** The time since something changed, milliseconds. */
  readonly quietMs: number;
  /** Messages in dead-letter queues that were not there before the run. */
  readonly newDeadLetters: number;
  readonly faults: MadeFaults;
}

/**
 * Decides whether a run is over. While a fault is `broken`, it goes on. Once all are `repaired`, it waits for the redrive of the dead
 * letters that they caused: a person does both, so no time is too long.
 *
 * @returns `undefined` if the run goes on
 *
 * @example
 * ```ts
 * runEnd({ isAtRest: false, quietMs: 200_000, newDeadLetters: 0, faults: 'none' }); // 'stuck'
 * ```
 */
export function runEnd({
  isAtRest,
  quietMs,
  newDeadLetters,
  faults,
}: RunState): 'settled' | 'stuck' | undefined {
  if (faults === 'broken' || (faults === 'repaired' && newDeadLetters > 0)) return undefined;
  if (isAtRest) return 'settled';
  return quietMs > STUCK_MS ? 'stuck' : undefined;
}
