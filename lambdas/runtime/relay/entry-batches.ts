import { type BusEntry, PUT_EVENTS_BYTES_MAX, PUT_EVENTS_ENTRIES_MAX } from '../bus/event-bus.ts';

/** What an entry's time counts in its size (user guide, "Calculating PutEvents event entry size"). */
const ENTRY_TIME_BYTES = 14;

/** Splits what carries an entry into PutEvents calls, in order, by count and by bytes. */
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

/** The size of an entry as EventBridge counts it, and its trace header, to be on the safe side. */
function entryBytes(entry: BusEntry): number {
  return (
    ENTRY_TIME_BYTES +
    Buffer.byteLength(entry.source) +
    Buffer.byteLength(entry.detailType) +
    Buffer.byteLength(entry.detail) +
    Buffer.byteLength(entry.traceHeader ?? '')
  );
}

/** Cuts anything into groups of a size, in order, each made only when it is asked for. */
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
