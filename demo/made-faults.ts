import type { Deployment } from '../cli/deployment/deployment.ts';
import type { DemoFault } from '../cli/page/server/protocol.ts';
import { errorMessage } from '../lambdas/runtime/base/errors.ts';
import type { Outputs } from '../localstack/cdk-process.ts';
import type { MadeFaults } from './run-end.ts';

type Name = DemoFault['name'];

/** Dependencies of {@link createFaultLedger}. */
interface FaultLedgerDeps {
  /** Called after every change. */
  readonly onChange: () => void;
  /** Receives the error of a fault or a repair that failed. */
  readonly onError: (message: string) => void;
}

/** The faults of a run and their states. */
export interface FaultLedger {
  stateOf(name: Name): DemoFault['state'];
  /** Why a fault could not be made or repaired the last time; `null` unless that failed. */
  errorOf(name: Name): string | null;
  /** Begins to make a fault. Does nothing unless it is whole. */
  make(name: Name, fault: InjectedFault): void;
  /** Begins to repair a fault, once it is made. Does nothing unless it is broken. */
  repair(name: Name, fault: InjectedFault): void;
  /** `broken` while a fault is not repaired, then `repaired`; `none` if no fault was made. */
  made(): MadeFaults;
}

/** Creates the record of the faults of a run. */
export function createFaultLedger({ onChange, onError }: FaultLedgerDeps): FaultLedger {
  const states = new Map<Name, DemoFault['state']>();
  const errors = new Map<Name, string>();
  /** The making of each fault, which its repair waits for. */
  const making = new Map<Name, Promise<void>>();
  const stateOf = (name: Name) => states.get(name) ?? 'whole';

  function set(name: Name, state: DemoFault['state'], error?: string): void {
    states.set(name, state);
    if (error === undefined) errors.delete(name);
    else errors.set(name, error);
    onChange();
  }

  async function makeNow(name: Name, fault: InjectedFault): Promise<void> {
    try {
      await fault.break();
      onChange(); // the command may name what was broken
    } catch (error) {
      set(name, 'whole', `Break failed: ${errorMessage(error)}`);
      onError(`${name} failed: ${errorMessage(error)}`);
      return;
    }
    followed(name, fault).catch(() => {}); // stopped
  }

  /** Follows a fault that ends without a repair. */
  async function followed(name: Name, fault: InjectedFault): Promise<void> {
    if (fault.ended === undefined) return;
    await fault.ended();
    if (stateOf(name) === 'broken') set(name, 'whole');
  }

  async function repairNow(name: Name, fault: InjectedFault): Promise<void> {
    try {
      await making.get(name);
      await fault.repair();
      set(name, 'whole');
    } catch (error) {
      set(name, 'broken', `Repair failed: ${errorMessage(error)}`);
      onError(`The repair of ${name} failed: ${errorMessage(error)}`);
    }
  }

  return {
    stateOf,
    errorOf: (name) => errors.get(name) ?? null,
    make: (name, fault) => {
      if (stateOf(name) !== 'whole') return;
      set(name, 'broken');
      making.set(name, makeNow(name, fault));
    },
    repair: (name, fault) => {
      if (stateOf(name) !== 'broken') return;
      set(name, 'repairing');
      void repairNow(name, fault);
    },
    made: () => {
      if (states.size === 0) return 'none';
      return [...states.values()].every((state) => state === 'whole') ? 'repaired' : 'broken';
    },
  };
}

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
  readonly deployment: Deployment;
  readonly outputs: Outputs;
  readonly endpoint: string;
  /** Stops what waits. */
  readonly signal: AbortSignal;
}
