import pMap from 'p-map';
import { EVENT_PREFIX } from '../store/keys.ts';
import { outboxPartition } from '../store/outbox-partition.ts';
import type { Table } from '../store/table.ts';

/** The number of shards that are probed concurrently: as many as an SDK client opens connections. */
const PROBES_AT_ONCE = 50;

/**
 * Looks for events in the shards of a minute that the sweep does not read, by one query of one row each.
 *
 * @param range - the first shard to probe, and the end, exclusive
 * @returns the number of shards up to the highest one with an event; 0 if none has one
 */
export async function shardsOfMinute(
  table: Pick<Table, 'query'>,
  minute: string,
  {
    from,
    to,
    consistent = false,
  }: { readonly from: number; readonly to: number; readonly consistent?: boolean },
): Promise<number> {
  const shards = Array.from({ length: Math.max(0, to - from) }, (_, index) => from + index);
  const used = await pMap(
    shards,
    async (shard) => {
      const pk = outboxPartition(minute, shard);
      const { items } = await table.query({ pk, skPrefix: EVENT_PREFIX, limit: 1, consistent });
      return items.length > 0 ? shard + 1 : 0;
    },
    { concurrency: PROBES_AT_ONCE },
  );
  return Math.max(0, ...used);
}
