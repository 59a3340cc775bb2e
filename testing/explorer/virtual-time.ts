/** True time: it stands still until the scheduler lets it pass. `O` is whoever sleeps. */
export interface VirtualTime<O> {
  /** Epoch milliseconds. */
  now(): number;
  /** Resolves after `ms`, or at once when `signal` is aborted. */
  sleep(owner: O, ms: number, signal: AbortSignal | undefined): Promise<void>;
  /** When those who sleep wake, epoch milliseconds. */
  wakes(): number[];
  /** Those of whom this holds sleep for ever. */
  forget(gone: (owner: O) => boolean): void;
  /** Lets everything run that can run without time passing. */
  quiet(): Promise<void>;
  /** Lets time pass. Whoever sleeps is woken at his own time, and gets to run before the next one. */
  passTo(target: number): Promise<void>;
}

/** What is to be done as time passes. */
export interface TimeListener<O> {
  woke(owner: O): void;
  /** What has to be stopped before a time, the first of it; it is stopped at its own time. */
  nextStop(before: number): { readonly at: number; stop(): void } | undefined;
}

interface SleepingActor<O> {
  readonly owner: O;
  readonly until: number;
  readonly wake: () => void;
}

/** Makes a time that stands at `start`, epoch milliseconds. */
export function createVirtualTime<O>(start: number, listener: TimeListener<O>): VirtualTime<O> {
  let now = start;
  let turns = 0; // sleeps of no length under way
  const sleepers = new Set<SleepingActor<O>>();

  const quiet = async () => {
    do await turn();
    while (turns > 0);
  };

  return {
    now: () => now,
    quiet,
    wakes: () => [...sleepers].map(({ until }) => until),
    forget: (gone) => {
      for (const sleeper of sleepers) if (gone(sleeper.owner)) sleepers.delete(sleeper);
    },
    sleep: (owner, ms, signal) => {
      if (!(ms > 0) || signal?.aborted) {
        turns += 1;
        return turn().then(() => {
          turns -= 1;
        });
      }
      return new Promise((resolve) => {
        const wake = () => {
          sleepers.delete(sleeper);
          signal?.removeEventListener('abort', wake);
          resolve();
        };
        const sleeper: SleepingActor<O> = { owner, until: now + ms, wake };
        sleepers.add(sleeper);
        signal?.addEventListener('abort', wake, { once: true });
      });
    },
    passTo: async (target) => {
      for (;;) {
        const next = [...sleepers]
          .filter(({ until }) => until <= target)
          .toSorted((a, b) => a.until - b.until)[0];
        const stop = listener.nextStop(next?.until ?? target);
        if (stop !== undefined) {
          now = Math.max(now, stop.at);
          stop.stop();
        } else if (next !== undefined) {
          now = Math.max(now, next.until);
          listener.woke(next.owner);
          next.wake();
        } else break;
        await quiet();
      }
      now = Math.max(now, target);
    },
  };
}

/** Lets everything run that can run now. */
function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
