import { EVENT_PREFIX, eventIdOf } from '../../lambdas/runtime/store/keys.ts';
import { readable, readOutboxRow } from '../../lambdas/runtime/store/stored-rows.ts';
import type { Table } from '../../lambdas/runtime/store/table.ts';
import { eachOf, type PartialList, partitionsOf, readPartition } from './rows-reader.ts';

/** A published event. */
export interface SampledEvent {
  readonly eventId: string;
  readonly source: string;
  readonly type: string;
  /** Epoch milliseconds. */
  readonly publishedAt: number;
}

/** The table, and every shard that was ever used. */
export interface OutboxReaderDeps {
  readonly table: Table;
  readonly shards: readonly number[];
}

/** Reads the published events that were committed in a minute: the first `max` of each shard. */
export async function publishedIn(
  { table, shards }: OutboxReaderDeps,
  minute: string,
  max: number,
): Promise<PartialList<SampledEvent>> {
  const limit = Number.isFinite(max) ? max : undefined;
  const pages = await eachOf(partitionsOf(minute, shards), (pk) =>
    readPartition(table, { pk, skPrefix: EVENT_PREFIX, limit }, max),
  );
  const items = pages.flatMap((page) =>
    page.items.flatMap((item) => {
      const row = readable(readOutboxRow(item));
      const eventId = eventIdOf(item);
      if (row?.publishedAt === undefined || eventId === undefined) return [];
      return [{ eventId, source: row.source, type: row.type, publishedAt: row.publishedAt }];
    }),
  );
  return { items, more: pages.some(({ more }) => more) };
}
