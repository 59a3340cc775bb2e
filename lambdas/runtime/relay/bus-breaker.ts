/** After so many calls in a row that failed for one source, its events wait for the next pass. */
const SOURCE_FAILURES_MAX = 3;

/** After so many calls in a row that failed, whatever their source, the bus is given up for this pass. */
const BUS_FAILURES_MAX = 10;

/**
 * Remembers, for one pass of the relay, what the bus does not take at the moment. A service whose right to publish
 * was taken away must not hold up the others; a bus that is down must not be asked once for every event.
 */
export interface BusBreaker {
  /** Whether events of this source are not to be tried in this pass any more. */
  isOpen(source: string): boolean;
  /** Whether the whole bus is given up for this pass. */
  isGivenUp(): boolean;
  /** Tells how a call ended: the sources of which it took something, and those of which it failed everything. */
  record(call: { readonly took: ReadonlySet<string>; readonly failed: ReadonlySet<string> }): void;
}

/** Makes the breaker of one pass. */
export function createBusBreaker(): BusBreaker {
  const failures = new Map<string, number>();
  let inARow = 0;
  const isGivenUp = () => inARow >= BUS_FAILURES_MAX;
  return {
    isGivenUp,
    isOpen: (source) => isGivenUp() || (failures.get(source) ?? 0) >= SOURCE_FAILURES_MAX,
    record: ({ took, failed }) => {
      // Calls that were under way when their source was given up say nothing new about the bus.
      const news = [...failed].some((source) => (failures.get(source) ?? 0) < SOURCE_FAILURES_MAX);
      for (const source of took) failures.delete(source);
      for (const source of failed)
        if (!took.has(source)) failures.set(source, (failures.get(source) ?? 0) + 1);
      if (took.size > 0) inARow = 0;
      else if (news) inARow += 1;
    },
  };
}
