/** A rate that was tried. */
export interface TriedRate {
  /** Orders per second. */
  readonly asked: number;
  /** True if it was sustained. */
  readonly keptUp: boolean;
}

/** Until a rate is too high, each rate is this many times the previous one. */
const STEP = 2;

/** The search ends when the lowest failed rate is at most this many times the highest sustained one. */
const CLOSE = 1.2;

/**
 * The next rate to try in the search for the highest sustained one: increases first, then narrows down.
 *
 * @returns `undefined` once the highest is known to a fifth
 */
export function nextRate(tried: readonly TriedRate[]): number | undefined {
  const carried = highestCarried(tried)?.asked ?? 0;
  const above = lowestTooHigh(tried);
  if (above === undefined) return Math.max(1, carried * STEP);
  if (above <= Math.max(carried * CLOSE, carried + 1)) return undefined;
  return Math.round(Math.sqrt(Math.max(1, carried) * above));
}

/** The highest sustained rate. */
export function highestCarried<T extends TriedRate>(tried: readonly T[]): T | undefined {
  return tried.filter(({ keptUp }) => keptUp).sort((a, b) => b.asked - a.asked)[0];
}

/** The lowest rate that was too high. Failures below a sustained rate are ignored as bad luck. */
export function lowestTooHigh(tried: readonly TriedRate[]): number | undefined {
  const carried = highestCarried(tried)?.asked ?? 0;
  const tooHigh = tried.filter(({ keptUp, asked }) => !keptUp && asked > carried);
  return tooHigh.length === 0 ? undefined : Math.min(...tooHigh.map(({ asked }) => asked));
}
