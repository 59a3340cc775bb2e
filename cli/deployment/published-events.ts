import { jsonObject } from '../../lambdas/runtime/base/json.ts';
import type { Directory } from '../../lambdas/runtime/operations/directory.ts';
import type { StoredEventRow } from '../../lambdas/runtime/operations/outbox-rows.ts';
import { consumersOf } from '../../lambdas/runtime/operations/subscribed-events.ts';
import { eventIdInSortKey } from '../../lambdas/runtime/store/event-id.ts';
import { isUnreadable } from '../../lambdas/runtime/store/stored-rows.ts';
import { type PartialList, readMinutes } from './rows-reader.ts';
import type { StoredRows } from './stored-rows.ts';

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

/** The rows, and every shard that was ever used. */
export interface OutboxReaderDeps {
  readonly stored: Pick<StoredRows, 'outbox' | 'inbox'>;
  readonly shards: readonly number[];
}

/** The published events of a minute, and its rows that cannot be read. */
export interface PublishedMinute extends PartialList<SampledEvent> {
  /** The sort keys of rows that cannot be read. */
  readonly unreadable: readonly string[];
}

/** Reads the published events that were committed in a minute: of the first `max` rows of each shard. */
export async function publishedIn(
  { stored, shards, directory }: OutboxReaderDeps & { readonly directory: Directory },
  minute: string,
  max: number,
): Promise<PublishedMinute> {
  const unreadable: string[] = [];
  const sampled = (row: StoredEventRow): SampledEvent[] => {
    if (isUnreadable(row)) unreadable.push(row.SK);
    const eventId = eventIdInSortKey(row.SK);
    if (isUnreadable(row) || row.publishedAt === undefined || eventId === undefined) return [];
    const { source, type, publishedAt, publishedBy } = row;
    const data = () => jsonObject(row.envelope)?.data;
    const expecting = consumersOf(directory, { source, type, publishedBy, data });
    return [{ eventId, source, type, publishedAt, consumers: expecting.map(({ name }) => name) }];
  };
  const [read] = await readMinutes(stored.outbox, { minutes: [minute], shards }, { max }, sampled);
  return { items: read?.items.flat() ?? [], unreadable, more: read?.more ?? false };
}
