import type { DemoFault, DemoState } from './protocol.ts';

/** The faults that `npm run demo -- --ui` can make on the engine that it started. */
export interface DemoPanel {
  state(): DemoState;
  /** Makes a fault. Nothing happens if it is already made. */
  break(name: DemoFault['name']): Promise<void>;
  /** Runs the command that repairs a fault. Nothing happens if there is nothing to repair. */
  repair(name: DemoFault['name']): Promise<void>;
  /** Calls the listener after every change of the state. @returns a function that ends this */
  onChange(listener: () => void): () => void;
}
