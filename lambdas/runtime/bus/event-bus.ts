/** One entry to publish: a PutEvents request entry of EventBridge. */
export interface BusEntry {
  /** The owning service. */
  readonly source: string;
  /** The event's type. */
  readonly detailType: string;
  /** The envelope as JSON. */
  readonly detail: string;
  /** An X-Ray trace header, passed on unchanged. */
  readonly traceHeader?: string | undefined;
}

/** The result of one entry, in the order of the entries. */
export type BusResult =
  | { readonly ok: true; readonly id: string }
  | { readonly ok: false; readonly code: string; readonly message: string };

/** The bus port: the one EventBridge call that the relay makes. */
export interface Bus {
  /**
   * Publishes up to {@link PUT_EVENTS_ENTRIES_MAX} entries in one call. The call is tried once; the caller decides about
   * retries.
   *
   * @param timeoutMs - the call is abandoned after this time; it may still take effect
   * @returns one result per entry
   * @throws if the request failed as a whole; any of the entries may then have been published or not
   */
  put(entries: readonly BusEntry[], timeoutMs: number): Promise<BusResult[]>;
}

/** The maximum number of entries in one PutEvents call (EventBridge API reference, PutEvents). */
export const PUT_EVENTS_ENTRIES_MAX = 10;

/** The maximum size of one PutEvents call, bytes: below 1 MB since January 2026 (EventBridge quotas). */
export const PUT_EVENTS_BYTES_MAX = 1_000_000;

/** The size of an entry's time in bytes (EventBridge user guide, "Calculating PutEvents event entry size"). */
const ENTRY_TIME_BYTES = 14;

/** The size of an entry as EventBridge counts it, plus its trace header for safety. */
export function entryBytes(entry: BusEntry): number {
  return (
    ENTRY_TIME_BYTES +
    Buffer.byteLength(entry.source) +
    Buffer.byteLength(entry.detailType) +
    Buffer.byteLength(entry.detail) +
    Buffer.byteLength(entry.traceHeader ?? '')
  );
}

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
