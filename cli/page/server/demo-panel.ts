import type { DemoFault, DemoState } from './protocol.ts';

/** The runs of `npm run demo -- --ui`, and the faults that it can make on the engine that it started. */
export interface DemoPanel {
  state(): DemoState;
  /** Makes a fault. Nothing happens if it is already made. */
  break(name: DemoFault['name']): Promise<void>;
  /** Runs the command that repairs a fault. Nothing happens if there is nothing to repair. */
  repair(name: DemoFault['name']): Promise<void>;
  /** Places no more orders. The receipt follows once everything is processed. */
  endRun(): void;
  /** Starts a run without any fault. Nothing happens during a run. */
  startRun(): void;
  /** Calls the listener after every change of the state. @returns a function that ends this */
  onChange(listener: () => void): () => void;
}
