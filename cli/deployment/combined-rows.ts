import type { EventPage } from '../../lambdas/runtime/operations/outbox-rows.ts';
import { inBatches } from '../../lambdas/runtime/operations/row-batches.ts';
import type { PartialList } from './rows-reader.ts';
import type { StoredRows } from './stored-rows.ts';

/**
 * The rows of a Mailroom whose services also use PostgreSQL: a report reads those of both as one outbox and one inbox, and follows an event
 * from either to the other.
 */
export function combinedRows(postgres: StoredRows, dynamo: StoredRows): StoredRows {
  const stores = [dynamo, postgres] as const;
  return {
    outbox: {
      byId: (eventId, consistent) => firstOf(stores, ({ outbox }) => outbox.byId(eventId, consistent)),
      byIds: (eventIds, map) =>
        inBatches(eventIds, async (batch) => {
          const found = await postgres.outbox.byIds(batch, (eventId, event) => [eventId, event] as const);
          const inPostgres = new Map(found);
          return dynamo.outbox.byIds(batch, (eventId, event) =>
            map(eventId, inPostgres.get(eventId) ?? event),
          );
        }),
      inMinute: (minute, shard, choice, map) =>
        inOrder(
          stores.map(({ outbox }) =>
            outbox.inMinute(minute, shard, choice, (event) => ({ id: event.SK, item: map(event) })),
          ),
        ),
      pending: async (sweep, now) => joined(await each(stores, ({ outbox }) => outbox.pending(sweep, now))),
    },
    inbox: {
      byEvent: (consumer, eventId, consistent) =>
        firstOf(stores, ({ inbox }) => inbox.byEvent(consumer, eventId, consistent)),
      byEvents: (messages, map) =>
        inBatches(messages, async (batch) => {
          const inPostgres = new Map(
            await postgres.inbox.byEvents(batch, (message, row) => [message, row] as const),
          );
          return dynamo.inbox.byEvents(batch, (message, row) => map(message, inPostgres.get(message) ?? row));
        }),
      history: (consumer) => firstOf(stores, ({ inbox }) => inbox.history(consumer)),
      hinted: async (consumer, max) => {
        const found = joined(await each(stores, ({ inbox }) => inbox.hinted(consumer, max)));
        return {
          ...found,
          items: [...new Map(found.items.map((message) => [message.eventId, message])).values()],
        };
      },
      failedAt: (consumer, eventId) => firstOf(stores, ({ inbox }) => inbox.failedAt(consumer, eventId)),
      idsFrom: async (consumer, prefix, max) =>
        (await each(stores, ({ inbox }) => inbox.idsFrom(consumer, prefix, max))).flat(),
    },
    deadLetters: {
      dead: async (shards, max) =>
        joined(await each(stores, ({ deadLetters }) => deadLetters.dead(shards, max))),
      rejected: async (consumer, max) =>
        joined(await each(stores, ({ deadLetters }) => deadLetters.rejected(consumer, max))),
      isRejected: async (consumer, eventId) =>
        (await each(stores, ({ deadLetters }) => deadLetters.isRejected(consumer, eventId))).includes(true),
    },
    operations: {
      between: async (range) => joined(await each(stores, ({ operations }) => operations.between(range))),
    },
    createdAt: async () => Math.min(...(await each(stores, (store) => store.createdAt()))),
  };
}

function each<T>(stores: readonly StoredRows[], read: (store: StoredRows) => Promise<T>): Promise<T[]> {
  return Promise.all(stores.map(read));
}

/** The row that PostgreSQL has, or else that of the table. */
async function firstOf<T>(
  stores: readonly StoredRows[],
  read: (store: StoredRows) => Promise<T | undefined>,
): Promise<T | undefined> {
  return (await each(stores, read)).findLast((row) => row !== undefined);
}

function joined<T>(lists: readonly PartialList<T>[]): PartialList<T> {
  return { items: lists.flatMap(({ items }) => items), more: lists.some(({ more }) => more) };
}

/** An item and the key that orders it. */
interface Keyed<T> {
  readonly id: string;
  readonly item: T;
}

/** The pages of several stores as one list in order: each page ends where the first of those that go on ends. */
async function* inOrder<T>(
  stores: readonly AsyncIterable<EventPage<Keyed<T>>>[],
): AsyncGenerator<EventPage<T>> {
  const open = stores.map((pages) => ({
    pages: pages[Symbol.asyncIterator](),
    read: [] as readonly Keyed<T>[],
    more: true,
  }));
  while (open.some(({ more, read }) => more || read.length > 0)) {
    for (const store of open) {
      while (store.more && store.read.length === 0) {
        const { value, done = false } = await store.pages.next();
        store.read = done ? [] : value.items;
        store.more = !done && value.more;
      }
    }
    const [end] = open.flatMap(({ more, read }) => (more ? (read.at(-1)?.id ?? []) : [])).toSorted();
    const page = open.flatMap(({ read }) => read.filter(({ id }) => end === undefined || id <= end));
    for (const store of open) store.read = store.read.filter(({ id }) => end !== undefined && id > end);
    yield {
      items: page.toSorted((a, b) => (a.id < b.id ? -1 : 1)).map(({ item }) => item),
      more: open.some(({ more, read }) => more || read.length > 0),
    };
  }
}
