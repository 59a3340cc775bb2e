import type { Readings } from '../../demo/readings.ts';
import { pause } from '../../demo/shop.ts';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { countOrders } from './counts.ts';

type Look<T> = () => Promise<T | false | undefined> | T | false | undefined;

/** How a scenario waits: for what is so, and never for a fixed time. */
export interface Waits {
  /**
   * Looks again and again until there is something to see.
   *
   * @throws `CHAOS_WAIT`, saying what was waited for, when the scenario's time is nearly up
   */
  until<T>(what: string, look: Look<T>): Promise<T>;
  /**
   * Waits until no order is lost and the queues are empty, or until the scenario's time is nearly up.
   *
   * @param setAside - orders that are expected to wait for an operator
   * @returns what it read last, to be counted
   */
  settle(placed: number, setAside?: ReadonlySet<string>): Promise<Readings>;
  /** Whether there is time for another wait. */
  isTimeLeft(): boolean;
  /** The same with a look of one's own at what was read, of all orders or of some. */
  settleWhen(isDone: (readings: Readings) => boolean, wave?: string): Promise<Readings>;
}

/** What {@link createWaits} needs. */
export interface WaitsDeps {
  /** When the scenario's time is up, epoch milliseconds. */
  readonly endsAt: number;
  /** Is aborted then. */
  readonly signal: AbortSignal;
  /** Reads everything about the scenario's orders, or about some of them. */
  readonly read: (wave?: string) => Promise<Readings>;
}

const LOOK_EVERY_MS = 250;

/** Waiting ends this long before the scenario's time is up, so that what was lost is counted and not only timed out. */
const COUNT_MS = 120_000;

/** Makes the waits of one scenario. */
export function createWaits({ endsAt, signal, read }: WaitsDeps): Waits {
  const isOver = () => Date.now() > endsAt - COUNT_MS;
  async function settleWhen(isDone: (readings: Readings) => boolean, wave?: string): Promise<Readings> {
    for (;;) {
      signal.throwIfAborted();
      const readings = await read(wave);
      if (isDone(readings) || isOver()) return readings;
      await pause(LOOK_EVERY_MS);
    }
  }
  return {
    until: async (what, look) => {
      for (;;) {
        signal.throwIfAborted();
        const found = await look();
        if (found !== undefined && found !== false) return found;
        if (isOver()) throw new MailroomError('CHAOS_WAIT', `The time ran out before this: ${what}.`);
        await pause(LOOK_EVERY_MS);
      }
    },
    isTimeLeft: () => !isOver(),
    settleWhen,
    settle: (placed, setAside) =>
      settleWhen((readings) => countOrders(readings, placed, setAside).lost === 0 && readings.queued === 0),
  };
}
