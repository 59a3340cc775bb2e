import pMap from 'p-map';
import { MINUTE_MS } from '../../lambdas/runtime/base/units.ts';
import type { Directory } from '../../lambdas/runtime/operations/directory.ts';
import type {
  EventPage,
  MinuteChoice,
  OutboxRows,
  StoredEventRow,
} from '../../lambdas/runtime/operations/outbox-rows.ts';
import { pendingSince } from '../../lambdas/runtime/outbox/pending-row.ts';
import { sweepStateOf } from '../../lambdas/runtime/relay/sweep-state.ts';
import { minuteOf } from '../../lambdas/runtime/store/event-id.ts';
import { SWEEP_STATE_KEY } from '../../lambdas/runtime/store/keys.ts';
import { outboxPartition } from '../../lambdas/runtime/store/outbox-partition.ts';
import type { Key, Table } from '../../lambdas/runtime/store/table.ts';

/** Concurrent reads: as many as an SDK client opens connections. */
const AT_ONCE = 50;

/** Concurrent reads of partitions: those of ten joined requests. See `joinedReads`. */
export const PARTITIONS_AT_ONCE = 500;

/** The result of a bounded read. */
export interface PartialList<T> {
  readonly items: readonly T[];
  /** There is more than was read. */
  readonly more: boolean;
}

/** Maps items concurrently and keeps their order. Stops between two items when `signal` is aborted. */
export async function eachOf<T, R>(
  items: readonly T[],
  work: (item: T) => Promise<R>,
  signal?: AbortSignal,
): Promise<R[]> {
  return pMap(items, work, { concurrency: AT_ONCE, ...(signal && { signal }) });
}

/** As {@link eachOf}, for reads of partitions. */
export async function eachPartition<T, R>(
  partitions: readonly T[],
  read: (partition: T) => Promise<R>,
  signal?: AbortSignal,
): Promise<R[]> {
  return pMap(partitions, read, { concurrency: PARTITIONS_AT_ONCE, ...(signal && { signal }) });
}

/** The layout of the outbox as recorded by the sweep. */
export interface SweepReading {
  /** Every shard that was ever used. */
  readonly shards: readonly number[];
  /** When the last complete pass began, epoch milliseconds; `undefined` before the first. */
  readonly sweptTo: number | undefined;
  /** The version of the state row; `undefined` before the first pass. */
  readonly schema: number | undefined;
}

/** Reads the sweep's state row. */
export async function readSweepState({ mailroom }: Directory, table: Table): Promise<SweepReading> {
  const item = await table.get(SWEEP_STATE_KEY);
  const { shards = 0, sweptTo } = sweepStateOf(item);
  return {
    shards: [...Array(Math.max(shards, mailroom.shards)).keys()],
    sweptTo,
    schema: Number.isSafeInteger(item?.schema) ? item?.schema : undefined,
  };
}

/** When the sweep's last complete pass began; before the first, when the table was created. Epoch milliseconds. */
export async function readSweptAt(
  directory: Directory,
  { table, stored }: { readonly table: Table; readonly stored: { createdAt(): Promise<number> } },
): Promise<number> {
  return (await readSweepState(directory, table)).sweptTo ?? stored.createdAt();
}

/** The partitions of a minute, one for each shard. */
export function partitionsOf(minute: string, shards: readonly number[]): string[] {
  return shards.map((shard) => outboxPartition(minute, shard));
}

/** Every minute that overlaps a range of time, as written in keys, newest first. */
export function minutesOf(since: number, until: number): string[] {
  const minutes: string[] = [];
  for (let at = Math.floor(until / MINUTE_MS) * MINUTE_MS; at > since - MINUTE_MS; at -= MINUTE_MS)
    minutes.push(minuteOf(at));
  return minutes;
}

/** True for the row of a scheduled event before its due time, which is also that of its id. */
export function isNotDue(
  { PK, SK, dueAt }: Key & { readonly dueAt?: number | undefined },
  now: number,
): boolean {
  return dueAt !== undefined && dueAt > now && (pendingSince({ PK, SK }) ?? 0) > now;
}

/** The rows of minutes to read: every row, or at most `max` of each shard of a minute. */
type MinutesChoice = Omit<MinuteChoice, 'pageSize'> & {
  readonly max?: number | undefined;
  /** Stops between two partitions when it is aborted. */
  readonly signal?: AbortSignal | undefined;
};

/**
 * Reads the events of minutes, and maps one row at a time.
 *
 * @returns a list for each minute
 */
export async function readMinutes<T>(
  outbox: Pick<OutboxRows, 'inMinute'>,
  { minutes, shards }: { readonly minutes: readonly string[]; readonly shards: readonly number[] },
  { max = Number.POSITIVE_INFINITY, signal, ...choice }: MinutesChoice,
  map: (event: StoredEventRow) => T,
): Promise<PartialList<T>[]> {
  const pageSize = Number.isFinite(max) ? max : undefined;
  const parts = minutes.flatMap((minute) => shards.map((shard) => ({ minute, shard })));
  const found = await eachPartition(
    parts,
    ({ minute, shard }) => upTo(outbox.inMinute(minute, shard, { ...choice, pageSize }, map), max),
    signal,
  );
  return minutes.map((_minute, index) => {
    const lists = found.slice(index * shards.length, (index + 1) * shards.length);
    return { items: lists.flatMap(({ items }) => items), more: lists.some(({ more }) => more) };
  });
}

/** Reads pages until there are enough items. */
async function upTo<T>(pages: AsyncIterable<EventPage<T>>, max: number): Promise<PartialList<T>> {
  const items: T[] = [];
  for await (const page of pages) {
    items.push(...page.items);
    if (items.length >= max) return { items: items.slice(0, max), more: page.more || items.length > max };
  }
  return { items, more: false };
}

/** Reads the value of a key once and caches it. */
export function once<T>(known: Map<string, Promise<T>>, key: string, read: () => Promise<T>): Promise<T> {
  const found = known.get(key) ?? read();
  known.set(key, found);
  return found;
}
