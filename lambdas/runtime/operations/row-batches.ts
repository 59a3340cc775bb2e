import pMap from 'p-map';
import { GET_EACH_REQUEST_MAX } from '../store/table.ts';

/** Batches that are read at once: an item may have 400 KB, so that each of them has up to 40 MB in memory. */
const BATCHES_AT_ONCE = 4;

/** Reads the rows of any number of values in batches of 100, as many as one request reads. Keeps their order. */
export async function inBatches<T, R>(
  values: readonly T[],
  read: (batch: readonly T[]) => Promise<readonly R[]>,
): Promise<R[]> {
  const starts = Array.from(
    { length: Math.ceil(values.length / GET_EACH_REQUEST_MAX) },
    (_, index) => index * GET_EACH_REQUEST_MAX,
  );
  const batches = await pMap(starts, (from) => read(values.slice(from, from + GET_EACH_REQUEST_MAX)), {
    concurrency: BATCHES_AT_ONCE,
  });
  return batches.flat();
}
