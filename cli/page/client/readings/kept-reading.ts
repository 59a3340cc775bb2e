import type { Reading, ReadingName } from '../../server/protocol.ts';
import { errorOf, type UsedReading, useReading } from '../frame/use-reading.ts';

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
  if (used.reading !== null && errorOf(used.reading) === null) kept.set(name, used.reading);
  return { ...used, reading: kept.get(name) ?? null };
}
