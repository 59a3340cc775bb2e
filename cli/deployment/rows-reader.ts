import pMap from 'p-map';
import { MINUTE_MS } from '../../lambdas/runtime/base/units.ts';
import type { Directory } from '../../lambdas/runtime/operations/directory.ts';
import { pendingSince } from '../../lambdas/runtime/outbox/pending-row.ts';
import { sweepStateOf } from '../../lambdas/runtime/relay/sweep-state.ts';
import { minuteOf } from '../../lambdas/runtime/store/event-id.ts';
import { SWEEP_STATE_KEY } from '../../lambdas/runtime/store/keys.ts';
import { outboxPartition } from '../../lambdas/runtime/store/outbox-partition.ts';
import {
  GET_EACH_REQUEST_MAX,
  type Item,
  type Key,
  type Query,
  type Table,
} from '../../lambdas/runtime/store/table.ts';

/** Concurrent reads: as many as an SDK client opens connections. */
const AT_ONCE = 50;

/** Concurrent reads of {@link withItems}: an item may have 400 KB, so that each of them has up to 40 MB in memory. */
const BATCHES_AT_ONCE = 4;

/** The result of a bounded read. */
export interface PartialList<T> {
  readonly items: readonly T[];
  /** There is more than was read. */
  readonly more: boolean;
}

/** Reads up to `max` items of a partition, unchecked. */
export async function readPartition(table: Table, query: Query, max: number): Promise<PartialList<Item>> {
  const items: Item[] = [];
  let cursor: Item | undefined;
  do {
    const page = await table.query({ ...query, cursor });
    items.push(...page.items);
    cursor = page.cursor;
  } while (cursor !== undefined && items.length < max);
  return { items: items.slice(0, max), more: cursor !== undefined || items.length > max };
}

/** Maps items concurrently and keeps their order. Stops between two items when `signal` is aborted. */
export async function eachOf<T, R>(
  items: readonly T[],
  work: (item: T) => Promise<R>,
  signal?: AbortSignal,
): Promise<R[]> {
  return pMap(items, work, { concurrency: AT_ONCE, ...(signal && { signal }) });
}

/**
 * Reads the item of each value, 100 by one request and eventually consistent, and maps each value with its item. Keeps their order.
 *
 * @example
 * ```ts
 * const keyOf = (eventId: string) => inboxKey('payments', eventId);
 * const claimed = await withItems(table, eventIds, keyOf, (_eventId, item) => item !== undefined);
 * ```
 */
export async function withItems<T, R>(
  table: Pick<Table, 'getEach'>,
  values: readonly T[],
  keyOf: (value: T) => Key,
  map: (value: T, item: Item | undefined) => R,
): Promise<R[]> {
  const batches: (readonly T[])[] = [];
  for (let from = 0; from < values.length; from += GET_EACH_REQUEST_MAX)
    batches.push(values.slice(from, from + GET_EACH_REQUEST_MAX));
  const read = async (batch: readonly T[]) => {
    const items = await table.getEach(batch.map(keyOf));
    return batch.map((value, index) => map(value, items[index]));
  };
  return (await pMap(batches, read, { concurrency: BATCHES_AT_ONCE })).flat();
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
export async function readSweptAt(directory: Directory, table: Table): Promise<number> {
  return (await readSweepState(directory, table)).sweptTo ?? table.createdAt();
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
export function isNotDue(row: Item, now: number): boolean {
  return typeof row.dueAt === 'number' && row.dueAt > now && (pendingSince(row) ?? 0) > now;
}

/** Reads the value of a key once and caches it. */
export function once<T>(known: Map<string, Promise<T>>, key: string, read: () => Promise<T>): Promise<T> {
  const found = known.get(key) ?? read();
  known.set(key, found);
  return found;
}
