/** A connection that is opened on first use, kept for the container's next invocations, and opened again after a failure. */
export interface HeldConnection<T> {
  get(): Promise<T>;
  /** Closes it, so that the next `get` opens another one. @param only - does nothing unless this is the one that is held */
  drop(only?: T): void;
}

/**
 * Holds a connection. A failed attempt to open it is not kept.
 *
 * @param close - its failure is ignored: the connection may be broken
 */
export function heldConnection<T>(
  open: () => Promise<T>,
  close: (connection: T) => unknown,
): HeldConnection<T> {
  let held: Promise<T> | undefined;
  const forget = (opened: Promise<T>) => {
    if (held === opened) held = undefined;
  };
  return {
    get: () => {
      if (held !== undefined) return held;
      const opened = open();
      held = opened;
      opened.catch(() => forget(opened));
      return opened;
    },
    drop: (only) => {
      const opened = held;
      if (opened === undefined) return;
      if (only === undefined) forget(opened);
      opened
        .then((connection) => {
          if (only !== undefined && (connection !== only || held !== opened)) return undefined;
          forget(opened);
          return close(connection);
        })
        .catch(() => {});
    },
  };
}
