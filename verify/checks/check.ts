import type { DeployedSystem } from '../deployed-system.ts';
import type { VerifyResult } from '../receipt.ts';

/** The finding of a check. A failed check throws instead. */
export interface VerifyFinding extends Pick<VerifyResult, 'detail'> {
  readonly outcome: 'passed' | 'not-shown';
}

/** One thing that a deployment must do, or must not. */
export interface VerifyCheck {
  /** Its line in the receipt: a statement that holds if it passed. */
  readonly name: string;
  /**
   * Tries it, and leaves the system as it found it, apart from finished orders.
   *
   * @throws an error that says what was seen instead
   */
  run(system: DeployedSystem): Promise<VerifyFinding>;
}

/** A check that found what it says. */
export function passed(detail: string): VerifyFinding {
  return { outcome: 'passed', detail };
}

/** A check that this target cannot show, and why. */
export function notShown(detail: string): VerifyFinding {
  return { outcome: 'not-shown', detail };
}
