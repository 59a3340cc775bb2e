import { type BusEntry, entryBytes, PUT_EVENTS_BYTES_MAX, PUT_EVENTS_ENTRIES_MAX } from './event-bus.ts';

/** Splits entries into PutEvents calls, in order, by count and by bytes. */
export function batchEntries<T extends { readonly entry: BusEntry }>(rows: readonly T[]): T[][] {
  const batches: T[][] = [];
  let bytesLeft = 0;
  for (const row of rows) {
    const bytes = entryBytes(row.entry);
    const last = batches.at(-1);
    if (last === undefined || last.length >= PUT_EVENTS_ENTRIES_MAX || bytes > bytesLeft) {
      batches.push([row]);
      bytesLeft = PUT_EVENTS_BYTES_MAX - 1 - bytes;
    } else {
      last.push(row);
      bytesLeft -= bytes;
    }
  }
  return batches;
}

/** Splits items into groups of at most the given size, in order and lazily. */
export function* groupsOf<T>(items: Iterable<T>, size: number): Generator<T[]> {
  let group: T[] = [];
  for (const item of items) {
    group.push(item);
    if (group.length < size) continue;
    yield group;
    group = [];
  }
  if (group.length > 0) yield group;
}
