/** Those of a batch that run last and alone: after everything else is over, one by one, fewest attempts first. */
export interface LastLane {
  /** One record of the batch is over. */
  arrive(): void;
  /** One record of the batch waits for its turn in the lane, and runs in it. */
  runLast<T>(attempts: number, work: () => Promise<T>): Promise<T>;
}

/**
 * Makes the last lane of a batch. A message taken over from a lease that has passed may be the one that killed its
 * process: so it does not take its batch along, and each of them gets its turn before it.
 *
 * @param size - how many records the batch has; the lane opens when each has arrived or waits
 */
export function lastLane(size: number): LastLane {
  const waiting: { readonly attempts: number; readonly run: () => Promise<void> }[] = [];
  let expected = size;

  const arrive = () => {
    expected -= 1;
    if (expected === 0) void runAll();
  };

  async function runAll(): Promise<void> {
    for (const { run } of waiting.sort((a, b) => a.attempts - b.attempts)) await run();
  }

  return {
    arrive,
    runLast: (attempts, work) =>
      new Promise((resolve, reject) => {
        waiting.push({ attempts, run: () => work().then(resolve, reject) });
        arrive();
      }),
  };
}
