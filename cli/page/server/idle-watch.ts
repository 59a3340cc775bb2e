/** Watches whether a server is used. */
export interface IdleWatch {
  /** The server was used now. */
  seen(): void;
  /** It is in use until the returned function is called. */
  begin(): () => void;
  /** Ends the watch. */
  stop(): void;
}

/**
 * Calls `onIdle` once after `idleMs` without use.
 *
 * @param isBusy - postpones the end, e.g. while a change is made and no tab is open
 */
export function createIdleWatch(
  idleMs: number,
  { onIdle, isBusy }: { readonly onIdle: () => void; readonly isBusy: () => boolean },
): IdleWatch {
  let uses = 0;
  let timer: NodeJS.Timeout | undefined;
  const restart = (): void => {
    clearTimeout(timer);
    if (uses === 0) timer = setTimeout(() => (isBusy() ? restart() : onIdle()), idleMs).unref();
  };
  restart();
  return {
    seen: restart,
    begin: () => {
      uses += 1;
      clearTimeout(timer);
      let ended = false;
      return () => {
        if (ended) return;
        ended = true;
        uses -= 1;
        restart();
      };
    },
    stop: () => {
      uses = Number.POSITIVE_INFINITY;
      clearTimeout(timer);
    },
  };
}
