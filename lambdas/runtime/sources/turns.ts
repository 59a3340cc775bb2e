/**
 * Runs messages beside one another, except one that must run alone because it may have killed its process: it waits until the others have
 * ended, and those that come after it wait for its end.
 */
export interface Turns {
  /** Runs beside others. */
  beside<T>(run: () => Promise<T>): Promise<T>;
  /** Runs while no other runs. */
  alone<T>(run: () => Promise<T>): Promise<T>;
}

/** Creates the turns of one process. */
export function createTurns(): Turns {
  const running = new Set<Promise<unknown>>();
  /** Ends when the last message that must run alone has ended. */
  let lastAlone: Promise<unknown> = Promise.resolve();

  const started = <T>(run: () => Promise<T>): Promise<T> => {
    const ended = run().finally(() => running.delete(ended));
    running.add(ended);
    return ended;
  };
  return {
    beside: async (run) => {
      for (let seen: unknown; seen !== lastAlone; ) {
        seen = lastAlone;
        await lastAlone;
      }
      return started(run);
    },
    alone: async (run) => {
      const before = lastAlone;
      const ended = before.then(async () => {
        await Promise.allSettled(running);
        return run();
      });
      lastAlone = ended.catch(() => {});
      return ended;
    },
  };
}
