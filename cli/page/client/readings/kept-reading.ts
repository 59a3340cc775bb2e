import type { Reading, ReadingName } from '../../server/readings.ts';
import { type UsedReading, useReading } from '../frame/use-reading.ts';

/** The last good reading of each name: a screen that is opened again shows it with its age instead of nothing. */
const kept = new Map<ReadingName, Reading>();

/**
 * A reading command whose last result outlives its screen, and stays while a later one fails.
 *
 * @example
 * ```ts
 * const { reading, error, isReading, read } = useKeptReading('doctor');
 * ```
 */
export function useKeptReading<Name extends ReadingName>(name: Name): UsedReading<Name> {
  const used = useReading(name);
  if (used.reading !== null && used.reading.error === null) kept.set(name, used.reading);
  return { ...used, reading: (kept.get(name) as Reading<Name> | undefined) ?? null };
}
