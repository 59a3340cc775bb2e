/** A worker whose statements wait for the explorer, each before it is sent. */
export interface SteppedWorker {
  /** `ready`: it waits before a statement. `sent`: a statement is on its way, or waits for a lock. `done`: it has ended. */
  state(): 'ready' | 'sent' | 'done';
  /** Sends the statement before which it waits. */
  step(): void;
  /** Ends the worker and its connections. */
  crash(): Promise<void>;
  /** Runs the worker until it is done or has crashed. */
  run(work: () => Promise<void>): void;
  /** The error with which it ended, if it failed. */
  failure(): unknown;
}

/** A worker, as the pool of its database sees it. */
export interface Stepping extends Omit<SteppedWorker, 'crash'> {
  /** Sends a statement once the explorer lets it. A worker that has crashed gets no answer. @param isStepped - other workers can see that it ran */
  send<T>(isStepped: boolean, statement: () => Promise<T>): Promise<T>;
  /** Ends the worker. Its connections are still open. */
  end(): void;
}

/** @param changed - called after each change of its state */
export function stepping(changed: () => void): Stepping {
  let state: 'ready' | 'sent' | 'done' = 'sent';
  let crashed = false;
  let go: () => void = () => {};
  let failure: unknown;
  const become = (next: typeof state) => {
    if (crashed) return;
    state = next;
    changed();
  };
  return {
    send: async (isStepped, statement) => {
      if (crashed) await never();
      if (isStepped)
        await new Promise<void>((resolve) => {
          go = resolve;
          become('ready');
        });
      try {
        return await statement();
      } finally {
        if (crashed) await never();
      }
    },
    end: () => {
      become('done');
      crashed = true;
    },
    state: () => state,
    step: () => {
      state = 'sent';
      go();
    },
    run: (work) => {
      void work().then(
        () => become('done'),
        (error: unknown) => {
          failure = error;
          become('done');
        },
      );
    },
    failure: () => failure,
  };
}

function never(): Promise<never> {
  return new Promise(() => {});
}
