import { type Clock, systemClock } from '../base/clock.ts';

/** A connection that is opened on first use, kept for the container's next invocations, and opened again after a failure. */
export interface HeldConnection<T> {
  get(): Promise<T>;
  /** Closes it, so that the next `get` opens another one. @param only - does nothing unless this is the one that is held */
  drop(only?: T): void;
}

/** A broker that hangs would hang for a second connection, too: an opening is replaced only after this time, milliseconds. */
const OPENING_MAX_MS = 60_000;

/**
 * Holds a connection. A failed attempt to open it is not kept. An attempt that hangs is, for a minute, so that each call that runs out of time
 * does not leave one more connection behind.
 *
 * @param close - its failure is ignored: the connection may be broken
 */
export function heldConnection<T>(
  open: () => Promise<T>,
  close: (connection: T) => unknown,
  { now }: Pick<Clock, 'now'> = systemClock,
): HeldConnection<T> {
  interface Held {
    readonly opened: Promise<T>;
    readonly since: number;
    isOpen: boolean;
  }
  let held: Held | undefined;
  const forget = (one: Held) => {
    if (held === one) held = undefined;
  };
  const closed = (one: Held) => {
    forget(one);
    one.opened.then(close).catch(() => {});
  };
  return {
    get: () => {
      if (held !== undefined) return held.opened;
      const one: Held = { opened: open(), since: now(), isOpen: false };
      held = one;
      one.opened.then(
        () => {
          one.isOpen = true;
        },
        () => forget(one),
      );
      return one.opened;
    },
    drop: (only) => {
      const one = held;
      if (one === undefined) return;
      if (only === undefined) {
        if (one.isOpen || now() - one.since >= OPENING_MAX_MS) closed(one);
        return;
      }
      one.opened
        .then((connection) => {
          if (connection === only && held === one) closed(one);
        })
        .catch(() => {});
    },
  };
}
