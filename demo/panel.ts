import type { DemoFault, DemoReceipt, DemoState } from '../cli/page/server/protocol.ts';
import type { DemoPanel } from '../cli/page/server/routes.ts';
import { MailroomError } from '../lambdas/runtime/base/errors.ts';
import type { InjectedFault } from './made-faults.ts';
import { createFaultLedger } from './made-faults.ts';
import type { MadeFaults } from './run-end.ts';

/** The panel of the demo's runs, and what a run reports to it. */
export interface RunPanel extends DemoPanel {
  /** Resolves when a run is started, with a signal that is aborted when it must place no more orders. */
  nextRun(): Promise<AbortSignal>;
  /** Records that an order was placed. */
  placed(): void;
  /** Records that no more orders are placed. From then on no fault can be made. */
  settling(): void;
  /** Ends the run with its receipt. */
  finish(receipt: DemoReceipt): void;
  /** `broken` while a fault is not repaired, then `repaired`; `none` if no fault was made. */
  faults(): MadeFaults;
}

/** Dependencies of {@link createPanel}. */
interface PanelDeps {
  /** The number of orders of a run. @default orders for `maxMs` */
  readonly orders: number | undefined;
  /** The longest time for which a run without a number of orders places them, milliseconds. */
  readonly maxMs: number;
  /** The faults of an engine that this demo started; `undefined` for any other engine. */
  readonly faults: Readonly<Record<DemoFault['name'], InjectedFault>> | undefined;
  /** Receives the error of a fault or a repair that failed. */
  readonly onError: (message: string) => void;
}

/**
 * Creates the panel with which the page starts and ends runs, and makes and repairs the faults of the demo. A call resolves when its
 * work has begun; the state changes when it ends.
 *
 * @example
 * ```ts
 * const panel = createPanel({ orders: 200, maxMs: 0, faults, onError: steps.say });
 * panel.startRun();
 * const ends = await panel.nextRun();
 * await panel.break('rule-off');
 * panel.faults(); // 'broken'
 * ```
 */
export function createPanel({ orders, maxMs, faults, onError }: PanelDeps): RunPanel {
  const listeners = new Set<() => void>();
  const changed = (): void => {
    for (const listener of listeners) listener();
  };
  const newLedger = () => createFaultLedger({ onChange: changed, onError });
  let ledger = newLedger();
  let run: Pick<DemoState, 'phase' | 'placed' | 'endsAt' | 'receipt'> = {
    phase: 'waiting',
    placed: 0,
    endsAt: null,
    receipt: null,
  };
  let end = new AbortController();
  let started = later<AbortSignal>();

  function change(part: Partial<typeof run>): void {
    run = { ...run, ...part };
    changed();
  }

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
        error: ledger.errorOf(name),
        repair: known(name).repairCommand(),
      })),
      ...run,
      orders: orders ?? null,
    }),
    break: async (name) => {
      const fault = known(name);
      if (run.phase === 'ordering') return ledger.make(name, fault);
      throw new MailroomError(
        'DEMO_OVER',
        'The run places no more orders, so nothing would be affected. Start a new run.',
      );
    },
    repair: async (name) => ledger.repair(name, known(name)),
    endRun: () => end.abort(),
    startRun: () => {
      if (run.phase !== 'waiting' && run.phase !== 'over') return;
      ledger = newLedger();
      const own = new AbortController();
      end = own;
      if (orders === undefined) setTimeout(() => own.abort(), maxMs).unref();
      const endsAt = orders === undefined ? Date.now() + maxMs : null;
      change({ phase: 'ordering', placed: 0, endsAt, receipt: null });
      started.resolve(own.signal);
    },
    onChange: (listener) => {
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
      };
    },
    nextRun: async () => {
      const ends = await started.promise;
      started = later();
      return ends;
    },
    placed: () => change({ placed: run.placed + 1 }),
    settling: () => change({ phase: 'settling' }),
    finish: (receipt) => change({ phase: 'over', receipt }),
    faults: () => ledger.made(),
  };
}

/** A promise and the function that resolves it. */
function later<T>() {
  let resolve = (_value: T): void => {};
  const promise = new Promise<T>((onValue) => {
    resolve = onValue;
  });
  return { promise, resolve };
}
