import { SOURCES_PK } from '../store/keys.ts';
import type { SourceConsumerRow } from '../store/source-consumer-row.ts';
import { type Item, pagesOf, type Table } from '../store/table.ts';
import type { ConsumerEntry, Directory, SourceConsumer } from './directory.ts';

/**
 * Reads the consumers of other sources than SQS, sorted by name. An entry in another form is left out: no decision about a message depends
 * on one. So is that of a consumer that a construct has made since: it has moved to a queue.
 *
 * @param directory - its consumers
 * @param now - an entry that expired before is left out, epoch milliseconds
 */
export async function readSourceConsumers(
  table: Pick<Table, 'query'>,
  { consumers }: Pick<Directory, 'consumers'>,
  now: number,
): Promise<SourceConsumer[]> {
  const moved = new Set(consumers.map(({ name }) => name));
  const found: SourceConsumer[] = [];
  for await (const { items } of pagesOf(table, { pk: SOURCES_PK }))
    found.push(...items.flatMap((item) => entryOf(item, now) ?? []));
  return found.filter(({ name }) => !moved.has(name));
}

/** True for a consumer of another source. */
export function isSourceConsumer<C extends Pick<ConsumerEntry, 'name'>>(
  consumer: C | SourceConsumer,
): consumer is SourceConsumer {
  return 'from' in consumer;
}

function entryOf(item: Item, now: number): SourceConsumer | undefined {
  const {
    SK: name,
    service,
    from,
    events,
    order,
    maxAttempts,
    inboxRetentionDays,
    seenAt,
    expiresAt,
  } = item as Partial<SourceConsumerRow>;
  if (typeof name !== 'string' || typeof service !== 'string' || typeof from !== 'string') return undefined;
  if (typeof maxAttempts !== 'number' || typeof inboxRetentionDays !== 'number') return undefined;
  if (typeof seenAt !== 'number' || Number(expiresAt) * 1_000 <= now) return undefined;
  if (!Array.isArray(events) || !events.every(isEvent)) return undefined;
  return { name, service, from, events, order, maxAttempts, inboxRetentionDays, seenAt };
}

function isEvent(event: unknown): boolean {
  const { source, type } = Object(event);
  return typeof source === 'string' && typeof type === 'string';
}
