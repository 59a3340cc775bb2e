import { nextTurn } from '../../lambdas/runtime/base/clock.ts';
/** True time, which only advances when the scheduler says so. `O` identifies a sleeper's owner. */
export interface VirtualTime<O> {
  /** The current time in epoch milliseconds. */
  now(): number;
  /** Resolves after `ms`, or immediately if `signal` is aborted. */
  sleep(owner: O, ms: number, signal: AbortSignal | undefined): Promise<void>;
  /** When the sleepers wake, in epoch milliseconds. */
  wakes(): number[];
  /** Freezes the sleepers for which this returns true: they do not wake unless they are thawed. */
  freeze(gone: (owner: O) => boolean): readonly PendingSleep<O>[];
  /** Lets frozen sleepers go on under another owner. Those whose time has passed wake at once. */
  thaw(owner: O, sleepers: readonly PendingSleep<O>[]): void;
  /** Runs everything that can run without time passing. */
  quiet(): Promise<void>;
  /** Advances time. Each sleeper wakes at its own time, and runs before the next one wakes. */
  passTo(target: number): Promise<void>;
}

/** Callbacks while time advances. */
export interface TimeListener<O> {
  woke(owner: O): void;
  /** Returns the first invocation that must be stopped before a time; it is stopped at its own deadline. */
  nextStop(before: number): { readonly at: number; stop(): void } | undefined;
}

/** A sleep in progress. */
export interface PendingSleep<O> {
  owner: O;
  readonly until: number;
  readonly wake: () => void;
}

/** Creates a time that starts at `start`, in epoch milliseconds. */
export function createVirtualTime<O>(start: number, listener: TimeListener<O>): VirtualTime<O> {
  let now = start;
  let turns = 0; // zero-length sleeps in progress
  const sleepers = new Set<PendingSleep<O>>();

  const quiet = async () => {
    do await nextTurn();
    while (turns > 0);
  };

  return {
    now: () => now,
    quiet,
    wakes: () => [...sleepers].map(({ until }) => Math.max(until, now)),
    freeze: (gone) => {
      const frozen = [...sleepers].filter(({ owner }) => gone(owner));
      for (const sleeper of frozen) sleepers.delete(sleeper);
      return frozen;
    },
    thaw: (owner, frozen) => {
      for (const sleeper of frozen) {
        sleeper.owner = owner;
        sleepers.add(sleeper);
      }
    },
    sleep: (owner, ms, signal) => {
      if (!(ms > 0) || signal?.aborted) {
        turns += 1;
        return nextTurn().then(() => {
          turns -= 1;
        });
      }
      return new Promise((resolve) => {
        const wake = () => {
          sleepers.delete(sleeper);
          signal?.removeEventListener('abort', wake);
          resolve();
        };
        const sleeper: PendingSleep<O> = { owner, until: now + ms, wake };
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
