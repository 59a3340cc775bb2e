import pMap from 'p-map';
import type { Directory } from '../../lambdas/runtime/operations/directory.ts';
import { MINUTE_MS } from '../../lambdas/runtime/relay/sweep-minutes.ts';
import { sweepStateOf } from '../../lambdas/runtime/relay/sweep-state.ts';
import { minuteOf } from '../../lambdas/runtime/store/event-id.ts';
import { outboxPartition, SWEEP_STATE_KEY } from '../../lambdas/runtime/store/rows.ts';
import type { Item, Query, Table } from '../../lambdas/runtime/store/table.ts';

/** How many partitions are read at once: enough to be quick, few enough not to be throttled by a small table. */
const AT_ONCE = 32;

/** What a bounded read found. */
export interface PartialList<T> {
  readonly items: readonly T[];
  /** Whether there is more than was read. */
  readonly more: boolean;
}

/** Reads a partition, page after page, until there are `max` items: as they are stored, by whoever wrote them. */
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

/** Does some work for each, many at once, in order; stops between two when it is asked to. */
export async function eachOf<T, R>(
  items: readonly T[],
  work: (item: T) => Promise<R>,
  signal?: AbortSignal,
): Promise<R[]> {
  return pMap(items, work, { concurrency: AT_ONCE, ...(signal && { signal }) });
}

/** How the outbox is laid out, as the sweep has written it down. */
export interface SweepReading {
  /** The highest number of shards ever used. */
  readonly shards: readonly number[];
  /** When the last whole pass started, epoch milliseconds; `undefined` before the first. */
  readonly sweptTo: number | undefined;
}

/** Reads the sweep's state row. */
export async function readSweepState({ mailroom }: Directory, table: Table): Promise<SweepReading> {
  const { shards = 0, sweptTo } = sweepStateOf(await table.get(SWEEP_STATE_KEY));
  return { shards: [...Array(Math.max(shards, mailroom.shards)).keys()], sweptTo };
}

/** The partitions of a minute, one for each shard. */
export function partitionsOf(minute: string, shards: readonly number[]): string[] {
  return shards.map((shard) => outboxPartition(minute, shard));
}

/** Every minute that touches a range of time, as it stands in keys, newest first. */
export function minutesOf(since: number, until: number): string[] {
  const minutes: string[] = [];
  for (let at = Math.floor(until / MINUTE_MS) * MINUTE_MS; at > since - MINUTE_MS; at -= MINUTE_MS)
    minutes.push(minuteOf(at));
  return minutes;
}

/** Reads what is under a key the first time only. */
export function once<T>(known: Map<string, Promise<T>>, key: string, read: () => Promise<T>): Promise<T> {
  const found = known.get(key) ?? read();
  known.set(key, found);
  return found;
}
