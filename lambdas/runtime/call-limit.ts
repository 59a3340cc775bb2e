/** Makes a call, at once or when its turn has come. */
export type CallLimit = <T>(call: () => Promise<T>) => Promise<T>;

/**
 * Lets at most so many calls be under way at once; the others wait, first come, first served. What depends on the time,
 * such as whether a lease still lasts, belongs into the call, which begins only when its turn has come.
 */
export function callLimit(max: number): CallLimit {
  const waiting: (() => void)[] = [];
  let underWay = 0;
  return async (call) => {
    if (underWay < max) underWay += 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await call();
    } finally {
      // Whoever waits takes this place over.
      const next = waiting.shift();
      if (next === undefined) underWay -= 1;
      else next();
    }
  };
}
