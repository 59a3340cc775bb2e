import type { InboxRows } from './inbox-rows.ts';
import type { EventPage, OutboxRows } from './outbox-rows.ts';
import { inBatches } from './row-batches.ts';

/** The outbox and the inboxes of a Mailroom, in one store or in several. */
export interface MailroomRows {
  readonly outbox: OutboxRows;
  readonly inbox: InboxRows;
}

/**
 * The rows of a Mailroom whose services also use their own database, as one outbox and one inbox: a report follows an event from either store to the
 * other.
 */
export function combinedMailroomRows(database: MailroomRows, dynamo: MailroomRows): MailroomRows {
  const stores = [dynamo, database] as const;
  return {
    outbox: {
      byId: (eventId, consistent) => lastOf(stores, ({ outbox }) => outbox.byId(eventId, consistent)),
      byIds: (eventIds, map) =>
        inBatches(eventIds, async (batch) => {
          const found = await database.outbox.byIds(batch, (eventId, event) => [eventId, event] as const);
          const inDatabase = new Map(found);
          return dynamo.outbox.byIds(batch, (eventId, event) =>
            map(eventId, inDatabase.get(eventId) ?? event),
          );
        }),
      inMinute: (minute, shard, choice, map) =>
        inOrder(
          stores.map(({ outbox }) =>
            outbox.inMinute(minute, shard, choice, (event) => ({ id: event.SK, item: map(event) })),
          ),
        ),
    },
    inbox: {
      byEvent: (consumer, eventId, consistent) =>
        lastOf(stores, ({ inbox }) => inbox.byEvent(consumer, eventId, consistent)),
      byEvents: (messages, map) =>
        inBatches(messages, async (batch) => {
          const inDatabase = new Map(
            await database.inbox.byEvents(batch, (message, row) => [message, row] as const),
          );
          return dynamo.inbox.byEvents(batch, (message, row) => map(message, inDatabase.get(message) ?? row));
        }),
      history: (consumer) => lastOf(stores, ({ inbox }) => inbox.history(consumer)),
    },
  };
}

/** Reads all stores at once. */
export function eachStore<S, T>(stores: readonly S[], read: (store: S) => Promise<T>): Promise<T[]> {
  return Promise.all(stores.map(read));
}

/** The row that the last of the stores has that has one. */
export async function lastOf<S, T>(
  stores: readonly S[],
  read: (store: S) => Promise<T | undefined>,
): Promise<T | undefined> {
  return (await eachStore(stores, read)).findLast((row) => row !== undefined);
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
