import { jsonObject } from '../../lambdas/runtime/base/json.ts';
import type { Directory } from '../../lambdas/runtime/operations/directory.ts';
import { consumersOf } from '../../lambdas/runtime/operations/subscriptions.ts';
import { eventIdOf } from '../../lambdas/runtime/store/event-id.ts';
import { EVENT_PREFIX } from '../../lambdas/runtime/store/keys.ts';
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
  /** The consumers that must receive it. */
  readonly consumers: readonly string[];
}

/** The table, and every shard that was ever used. */
export interface OutboxReaderDeps {
  readonly table: Table;
  readonly shards: readonly number[];
}

/** Reads the published events that were committed in a minute: the first `max` of each shard. */
export async function publishedIn(
  { table, shards, directory }: OutboxReaderDeps & { readonly directory: Directory },
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
      const { source, type, publishedAt } = row;
      const expecting = consumersOf(directory, { source, type, data: () => jsonObject(row.envelope)?.data });
      return [{ eventId, source, type, publishedAt, consumers: expecting.map(({ name }) => name) }];
    }),
  );
  return { items, more: pages.some(({ more }) => more) };
}
