import type { Clock } from '../../../lambdas/runtime/base/clock.ts';
import { explain } from '../../terminal/report-error.ts';
import type { Flow } from './protocol.ts';

/**
 * Creates a reading that is repeated at an interval while it runs. Two readings never overlap, also not across a stop and a start.
 *
 * @param read - makes one reading; it never rejects
 */
export function createPollLoop(clock: Clock, everyMs: number, read: () => Promise<void>) {
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
    /** Reads now, and then at the interval. */
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
    /** Reads now; if a reading is running, once more after it. */
    wake: () => pause.abort(),
  };
}

/** The longest pause before a part that failed is read again, milliseconds. */
const PAUSE_MAX_MS = 60_000;

/** The parts of the flow that could not be read. */
export type UnreadParts = ReturnType<typeof createUnreadParts>;

/** Creates the list of parts that could not be read, empty at first. */
export function createUnreadParts(clock: Clock) {
  const failures = new Map<
    string,
    { readonly times: number; readonly message: string; readonly retryAt: number }
  >();
  return {
    /**
     * Reads a part, unless it failed and its pause is not over. A part that fails is read again at its interval doubled, then doubled
     * again, up to a minute. It never rejects.
     */
    read: async (part: string, everyMs: number, read: () => Promise<void>): Promise<void> => {
      const failed = failures.get(part);
      if (failed !== undefined && clock.now() < failed.retryAt) return;
      try {
        await read();
        failures.delete(part);
      } catch (error) {
        const times = (failed?.times ?? 0) + 1;
        const pauseMs = Math.min(PAUSE_MAX_MS, everyMs * 2 ** times);
        failures.set(part, { times, message: messageOf(error), retryAt: clock.now() + pauseMs });
      }
    },
    /** The parts that failed; those with one reason are one entry. */
    list: (): Flow['unread'] => {
      const parts = new Map<string, string>();
      for (const [part, { message }] of failures) {
        const others = parts.get(message);
        parts.set(message, others === undefined ? part : `${others}, ${part}`);
      }
      return [...parts].map(([message, part]) => ({ part, message }));
    },
    /** Makes every part be read at its next turn. */
    retry: (): void => {
      for (const [part, failure] of failures) failures.set(part, { ...failure, times: 0, retryAt: 0 });
    },
  };
}

function messageOf(error: unknown): string {
  const { message, remedy = 'It is read again within a minute.' } = explain(error);
  return `${message.replace(/\.?$/, '.')} ${remedy}`;
}
