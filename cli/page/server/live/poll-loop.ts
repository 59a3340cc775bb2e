import type { Clock } from '../../../../lambdas/runtime/base/clock.ts';

/** A reading that is repeated at an interval while it runs. */
export interface PollLoop {
  /** Reads now, and then at the interval. */
  start(): void;
  stop(): void;
  /** Reads now; if a reading is running, once more after it. */
  wake(): void;
}

/**
 * Creates a loop. Two readings never overlap, also not across a stop and a start.
 *
 * @param read - makes one reading; it never rejects
 *
 * @example
 * ```ts
 * const loop = createPollLoop(clock, 2_000, readEvents);
 * loop.start();
 * ```
 */
export function createPollLoop(clock: Clock, everyMs: number, read: () => Promise<void>): PollLoop {
  let ended = Promise.resolve();
  let pause = new AbortController();
  /** Identifies the present run. */
  let running: symbol | undefined;

  async function repeat(run: symbol): Promise<void> {
    while (running === run) {
      pause = new AbortController();
      // Aborted by a wake during the reading, too.
      const { signal } = pause;
      const dueAt = clock.now() + everyMs;
      await read();
      await clock.sleep(dueAt - clock.now(), signal);
    }
  }

  return {
    start: () => {
      const run = Symbol('run');
      running = run;
      // A run that pauses would otherwise delay this one.
      pause.abort();
      ended = ended.then(() => repeat(run));
    },
    stop: () => {
      running = undefined;
      pause.abort();
    },
    wake: () => pause.abort(),
  };
}
