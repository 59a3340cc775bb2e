/** A rate that was tried. */
export interface TriedRate {
  /** Orders a second. */
  readonly asked: number;
  /** Whether it was carried. */
  readonly keptUp: boolean;
}

/** While no rate was too high, the next is so many times the last. */
const STEP = 2;

/** The search ends when the lowest rate that was too high is at most so many times the highest that was carried. */
const CLOSE = 1.2;

/**
 * The rate to try next, to find the highest that is carried: higher and higher, then between what was carried and what was not.
 *
 * @returns `undefined` when the highest is known, to a fifth
 */
export function nextRate(tried: readonly TriedRate[]): number | undefined {
  const carried = highestCarried(tried)?.asked ?? 0;
  const above = lowestTooHigh(tried);
  if (above === undefined) return Math.max(1, carried * STEP);
  if (above <= Math.max(carried * CLOSE, carried + 1)) return undefined;
  return Math.round(Math.sqrt(Math.max(1, carried) * above));
}

/** The highest rate that was carried. */
export function highestCarried<T extends TriedRate>(tried: readonly T[]): T | undefined {
  return tried.filter(({ keptUp }) => keptUp).sort((a, b) => b.asked - a.asked)[0];
}

/** The lowest rate that was too high: those below one that was carried had bad luck, and do not count. */
export function lowestTooHigh(tried: readonly TriedRate[]): number | undefined {
  const carried = highestCarried(tried)?.asked ?? 0;
  const tooHigh = tried.filter(({ keptUp, asked }) => !keptUp && asked > carried);
  return tooHigh.length === 0 ? undefined : Math.min(...tooHigh.map(({ asked }) => asked));
}
