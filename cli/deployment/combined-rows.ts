import type { Directory } from '../../lambdas/runtime/operations/directory.ts';
import { combinedMailroomRows, eachStore, lastOf } from '../../lambdas/runtime/operations/mailroom-rows.ts';
import { sequenceOf } from '../../lambdas/runtime/store/keys.ts';
import { databaseHome } from './inbox-home.ts';
import type { PartialList } from './rows-reader.ts';
import type { StoredRows } from './stored-rows.ts';

/**
 * The rows of a Mailroom whose services also use their own database: {@link combinedMailroomRows}, and what else the command reads.
 */
export function combinedRows(
  database: StoredRows,
  dynamo: StoredRows,
  directory: Pick<Directory, 'consumers'>,
): StoredRows {
  const stores = [dynamo, database] as const;
  const isInDatabase = databaseHome(directory, database.inbox, dynamo.inbox);
  const { outbox, inbox } = combinedMailroomRows(database, dynamo);
  return {
    outbox: {
      ...outbox,
      pending: async (sweep, now) =>
        joined(await eachStore(stores, ({ outbox }) => outbox.pending(sweep, now))),
    },
    inbox: {
      ...inbox,
      hinted: async (consumer, max) => {
        const found = joined(await eachStore(stores, ({ inbox }) => inbox.hinted(consumer, max)));
        return { ...found, items: oneEach(found.items, ({ eventId }) => eventId) };
      },
      lastSequence: async (key) => {
        const home = (await isInDatabase(sequenceOf(key).consumer)) ? database : dynamo;
        return home.inbox.lastSequence(key);
      },
      failedAt: (consumer, eventId) => lastOf(stores, ({ inbox }) => inbox.failedAt(consumer, eventId)),
      idsFrom: async (consumer, prefix, max) =>
        (await eachStore(stores, ({ inbox }) => inbox.idsFrom(consumer, prefix, max))).flat(),
    },
    deadLetters: {
      dead: async (shards, max) =>
        joined(await eachStore(stores, ({ deadLetters }) => deadLetters.dead(shards, max))),
      rejected: async (consumer, max) => {
        const read = ({ deadLetters }: StoredRows) => deadLetters.rejected(consumer, max);
        const found = joined(await eachStore(stores, read));
        return { ...found, items: oneEach(found.items, ({ SK }) => SK) };
      },
      isRejected: async (consumer, eventId) =>
        (await eachStore(stores, ({ deadLetters }) => deadLetters.isRejected(consumer, eventId))).includes(
          true,
        ),
    },
    operations: {
      between: async (range) =>
        joined(await eachStore(stores, ({ operations }) => operations.between(range))),
    },
    connectors: () => database.connectors(),
    createdAt: async () => Math.min(...(await eachStore(stores, (store) => store.createdAt()))),
  };
}

function joined<T>(lists: readonly PartialList<T>[]): PartialList<T> {
  return { items: lists.flatMap(({ items }) => items), more: lists.some(({ more }) => more) };
}

/** One item of each message, in the order of their ids: a consumer that has moved may have it in both stores. The database is the last list. */
function oneEach<T>(items: readonly T[], idOf: (item: T) => string): T[] {
  const byId = [...new Map(items.map((item) => [idOf(item), item]))];
  return byId.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, item]) => item);
}
