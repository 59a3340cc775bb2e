/**
 * Calls a port that must not fail what it observes. Returns what the call returns, or `undefined` if it throws.
 *
 * @example
 * ```ts
 * attempted(() => span.end());
 * ```
 */
export function attempted<T>(call: () => T): T | undefined {
  try {
    const result = call();
    // A port may implement a method with an async function: its unhandled rejection would end the process.
    if (result instanceof Promise) result.catch(() => {});
    return result;
  } catch {
    return undefined;
  }
}
