import type { Session } from '../cli/deployment/session.ts';
import type { Outputs } from '../localstack/cdk-process.ts';

/** A fault that the demo can make, and its repair. */
export interface InjectedFault {
  /** The part that fails, and how. */
  readonly text: string;
  /** The command that repairs it, to paste. */
  repairCommand(): string;
  break(): Promise<void>;
  /** Does what the command does, and resolves when nothing of the fault is left that a command of its kind can repair. */
  repair(): Promise<void>;
  /** Resolves once the fault has ended without a repair. @default never */
  ended?(): Promise<void>;
}

/** Dependencies of the faults. */
export interface FaultDeps {
  readonly session: Session;
  readonly outputs: Outputs;
  readonly endpoint: string;
  /** Stops what waits. */
  readonly signal: AbortSignal;
}
