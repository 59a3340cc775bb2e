import type { DemoPanel } from '../cli/ui/demo-panel.ts';
import type { DemoFault } from '../cli/ui/protocol.ts';
import { MailroomError } from '../lambdas/runtime/errors.ts';
import type { InjectedFault } from './injected-fault.ts';
import { createFaultLedger } from './made-faults.ts';
import type { MadeFaults } from './run-end.ts';

/** The panel of a run, and what the run reports to it. */
export interface RunPanel extends DemoPanel {
  /** Records that an order was placed. */
  placed(): void;
  /** Ends the run with its receipt. From then on no fault can be made. */
  end(receipt: readonly string[]): void;
  /** `broken` while a fault is not repaired, then `repaired`; `none` if no fault was made. */
  faults(): MadeFaults;
}

/** Dependencies of {@link createPanel}. */
interface PanelDeps {
  /** The number of orders of the run. */
  readonly orders: number;
  /** The faults of an engine that this demo started; `undefined` for any other engine. */
  readonly faults: Readonly<Record<DemoFault['name'], InjectedFault>> | undefined;
  /** Receives the error of a fault or a repair that failed. */
  readonly onError: (message: string) => void;
}

/**
 * Creates the panel with which the page makes and repairs the faults of the demo. A call resolves when its work has begun; the state
 * changes when it ends.
 *
 * @example
 * ```ts
 * const panel = createPanel({ orders: 200, faults, onError: steps.say });
 * await panel.break('rule-off');
 * panel.faults(); // 'broken'
 * ```
 */
export function createPanel({ orders, faults, onError }: PanelDeps): RunPanel {
  const listeners = new Set<() => void>();
  const changed = (): void => {
    for (const listener of listeners) listener();
  };
  const ledger = createFaultLedger({ onChange: changed, onError });
  let placed = 0;
  let receipt: readonly string[] | null = null;

  function known(name: DemoFault['name']): InjectedFault {
    const fault = faults?.[name];
    if (fault !== undefined) return fault;
    throw new MailroomError(
      'NOT_THIS_ENGINE',
      'The demo makes faults only on an engine that it started. Stop the one on this port (npm run local:stop), or choose another ' +
        'with --port.',
    );
  }

  return {
    state: () => ({
      faults: (Object.keys(faults ?? {}) as DemoFault['name'][]).map((name) => ({
        name,
        text: known(name).text,
        state: ledger.stateOf(name),
        repair: known(name).repairCommand(),
      })),
      ...{ placed, orders, receipt, isOver: receipt !== null },
    }),
    break: async (name) => {
      const fault = known(name);
      if (receipt === null) return ledger.make(name, fault);
      throw new MailroomError(
        'DEMO_OVER',
        'The run is over and places no more orders, so nothing would be affected. Start another with npm run demo -- --ui.',
      );
    },
    repair: async (name) => ledger.repair(name, known(name)),
    onChange: (listener) => {
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
      };
    },
    placed: () => {
      placed += 1;
      changed();
    },
    end: (lines) => {
      receipt = lines;
      changed();
    },
    faults: ledger.made,
  };
}
