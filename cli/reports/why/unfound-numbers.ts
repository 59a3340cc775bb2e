import { readable } from '../../../lambdas/runtime/store/stored-rows.ts';
import type { Trace } from './trace.ts';

/** The numbers of one aggregate type's events that were found. */
interface FoundNumbers {
  readonly aggregateType: string;
  readonly numbers: Set<number>;
}

/**
 * Names the first numbers of an aggregate's events, below the highest one that a search for the aggregate found, that it did not find, and
 * where they may be.
 */
export function unfoundNumbers({ events, searched }: Trace): string[] {
  if (searched === undefined) return [];
  const { given: aggregateId } = searched;
  const found = new Map<string, FoundNumbers>();
  for (const { row, envelope } of events) {
    const { source } = readable(row) ?? {};
    const { aggregateType, sequence } = envelope ?? {};
    if (envelope?.aggregateId !== aggregateId || aggregateType === undefined || sequence === undefined)
      continue;
    const key = JSON.stringify([source, aggregateType]);
    const known = found.get(key) ?? { aggregateType, numbers: new Set() };
    known.numbers.add(sequence);
    found.set(key, known);
  }
  return [...found.values()].flatMap(({ aggregateType, numbers }) => {
    const highest = Math.max(...numbers);
    let first = 1;
    while (numbers.has(first)) first += 1;
    let last = first;
    while (last < highest && !numbers.has(last + 1)) last += 1;
    if (first > highest) return [];
    const [are, were] = first === last ? [`number ${first}`, 'was'] : [`numbers ${first} to ${last}`, 'were'];
    return [
      `${are} of ${aggregateType} ${aggregateId}, which ${were} not found: committed before the range (--since), expired, or in a ` +
        'shard that the sweep does not read, which `audit` looks for',
    ];
  });
}
