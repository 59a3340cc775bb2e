import { jsonObject } from '../../lambdas/runtime/base/json.ts';
import type { Directory } from '../../lambdas/runtime/operations/directory.ts';
import { consumersOf } from '../../lambdas/runtime/operations/subscribed-events.ts';
import { eventIdInSortKey } from '../../lambdas/runtime/store/event-id.ts';
import { EVENT_PREFIX } from '../../lambdas/runtime/store/keys.ts';
import { isUnreadable, readOutboxRow } from '../../lambdas/runtime/store/stored-rows.ts';
import type { Table } from '../../lambdas/runtime/store/table.ts';
import { eachOf, type PartialList, partitionsOf, readPartition } from './rows-reader.ts';

/** A published event. */
export interface SampledEvent {
  readonly eventId: string;
  readonly source: string;
  readonly type: string;
  /** Epoch milliseconds. */
  readonly publishedAt: number;
  /** The consumers that must receive it. */
  readonly consumers: readonly string[];
}

/** The table, and every shard that was ever used. */
export interface OutboxReaderDeps {
  readonly table: Table;
  readonly shards: readonly number[];
}

/** The published events of a minute, and its rows that cannot be read. */
export interface PublishedMinute extends PartialList<SampledEvent> {
  /** The sort keys of rows that cannot be read. */
  readonly unreadable: readonly string[];
}

/** Reads the published events that were committed in a minute: of the first `max` rows of each shard. */
export async function publishedIn(
  { table, shards, directory }: OutboxReaderDeps & { readonly directory: Directory },
  minute: string,
  max: number,
): Promise<PublishedMinute> {
  const limit = Number.isFinite(max) ? max : undefined;
  const pages = await eachOf(partitionsOf(minute, shards), (pk) =>
    readPartition(table, { pk, skPrefix: EVENT_PREFIX, limit }, max),
  );
  const rows = pages.flatMap(({ items }) => items.flatMap((item) => readOutboxRow(item) ?? []));
  const items = rows.flatMap((row): SampledEvent[] => {
    const eventId = eventIdInSortKey(row.SK);
    if (isUnreadable(row) || row.publishedAt === undefined || eventId === undefined) return [];
    const { source, type, publishedAt } = row;
    const expecting = consumersOf(directory, { source, type, data: () => jsonObject(row.envelope)?.data });
    return [{ eventId, source, type, publishedAt, consumers: expecting.map(({ name }) => name) }];
  });
  const unreadable = rows.filter(isUnreadable).map(({ SK }) => SK);
  return { items, unreadable, more: pages.some(({ more }) => more) };
}
