/** After this many consecutive failed calls for one source, its events wait for the next pass. */
const SOURCE_FAILURES_MAX = 3;

/** After this many consecutive failed calls, whatever their source, this pass stops publishing. */
const BUS_FAILURES_MAX = 10;

/**
 * Tracks, for one pass of the relay, which sources the bus currently refuses. A service that has lost its permission to publish
 * must not hold up the others, and a bus that is down must not receive a call for every event.
 */
export interface BusBreaker {
  /** Returns true if events of this source are skipped for the rest of this pass. */
  isOpen(source: string): boolean;
  /** Returns true if the pass has stopped publishing to the bus. */
  isStopped(): boolean;
  /** Records the result of a call: the sources with an accepted entry, and those with failed entries. */
  record(call: { readonly took: ReadonlySet<string>; readonly failed: ReadonlySet<string> }): void;
}

/** Creates the breaker of one pass. */
export function createBusBreaker(): BusBreaker {
  const failures = new Map<string, number>();
  let inARow = 0;
  const isStopped = () => inARow >= BUS_FAILURES_MAX;
  return {
    isStopped,
    isOpen: (source) => isStopped() || (failures.get(source) ?? 0) >= SOURCE_FAILURES_MAX,
    record: ({ took, failed }) => {
      // Calls already in flight when their source's breaker opened say nothing new about the bus.
      const news = [...failed].some((source) => (failures.get(source) ?? 0) < SOURCE_FAILURES_MAX);
      for (const source of took) failures.delete(source);
      for (const source of failed)
        if (!took.has(source)) failures.set(source, (failures.get(source) ?? 0) + 1);
      if (took.size > 0) inARow = 0;
      else if (news) inARow += 1;
    },
  };
}
