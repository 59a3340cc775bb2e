import {
  GET_EACH_REQUEST_MAX,
  type Item,
  type Key,
  type Page,
  type Query,
  type Table,
} from '../../lambdas/runtime/store/table.ts';
import { eachOf } from './rows-reader.ts';

/** The most partition keys after `IN` (DynamoDB developer guide, "PartiQL operators"). */
export const JOINED_MAX = 50;

/** The rows that queries of several partitions have in common. */
type JoinedQuery = Pick<Query, 'skPrefix' | 'where' | 'limit'>;

/**
 * Reads the rows of up to {@link JOINED_MAX} partitions with one request, in any order.
 *
 * @returns `undefined` if it could not read all of them
 */
export type ReadPartitions = (pks: readonly string[], query: JoinedQuery) => Promise<Item[] | undefined>;

/**
 * A table whose concurrent reads are joined: the queries of one turn of the event loop that differ only in their partition become one
 * request for up to 50 partitions, and the keys of its `getEach` calls are read 100 at a time. A report reads a thousand partitions, most
 * of them empty: each minute of an hour in each shard.
 *
 * A joined query that would be large is made for each partition instead, so a result is never a part of what the queries return.
 *
 * @example
 * ```ts
 * const table = joinedReads(dynamoTable({ client, tableName }), selectPartitions({ client, tableName }));
 * ```
 */
export function joinedReads(table: Table, read: ReadPartitions): Table {
  const query = gathered<Query, Page>(async (queries) => {
    const chunks = groupsOf(queries, ({ pk, ...common }) => JSON.stringify(common)).flatMap((group) =>
      chunksOf(group, JOINED_MAX),
    );
    const pages = new Map<Query, Promise<Page>>();
    for (const chunk of chunks) {
      const rows = rowsOf(read, chunk);
      for (const one of chunk) {
        const page = rows.then((found) => (found === undefined ? table.query(one) : pageOf(one, found)));
        pages.set(one, page);
      }
    }
    return queries.map((one) => pages.get(one) ?? table.query(one));
  });
  const getEach = gathered<readonly Key[], (Item | undefined)[]>(async (calls) => {
    const distinct = [...new Map(calls.flat().map((key) => [idOf(key), key])).values()];
    const items = new Map<string, Item | undefined>();
    await eachOf(chunksOf(distinct, GET_EACH_REQUEST_MAX), async (keys) => {
      const found = await table.getEach(keys);
      for (const [index, key] of keys.entries()) items.set(idOf(key), found[index]);
    });
    return calls.map(async (keys) => keys.map((key) => items.get(idOf(key))));
  });
  return {
    ...table,
    query: (one) => (one.consistent === true || one.cursor !== undefined ? table.query(one) : query(one)),
    getEach: (keys, options) => (options?.consistent === true ? table.getEach(keys, options) : getEach(keys)),
  };
}

/** The rows of queries that differ only in their partition, by partition; `undefined` if they were not read together. */
async function rowsOf(
  read: ReadPartitions,
  queries: readonly Query[],
): Promise<ReadonlyMap<string, readonly Item[]> | undefined> {
  const [first] = queries;
  if (first === undefined || queries.length === 1) return undefined;
  const { skPrefix, where, containing = {}, limit } = first;
  const rows = await read([...new Set(queries.map(({ pk }) => pk))], { skPrefix, where, limit });
  const texts = Object.entries(containing);
  const matches = (row: Item) =>
    texts.every(([name, text]) => typeof row[name] !== 'string' || row[name].includes(text));
  return rows && new Map(groupsOf(rows.filter(matches), pkOf).map((group) => [pkOf(group[0]), group]));
}

function pkOf(row: Item | undefined): string {
  return String(row?.PK);
}

/** The first page of a partition that was read completely. */
function pageOf({ pk, limit }: Query, rows: ReadonlyMap<string, readonly Item[]>): Page {
  const items = (rows.get(pk) ?? []).toSorted((a, b) => Buffer.compare(bytesOf(a), bytesOf(b)));
  const page = items.slice(0, limit);
  const last = page.at(-1);
  return items.length === page.length ? { items } : { items: page, cursor: { PK: pk, SK: last?.SK } };
}

/** DynamoDB sorts text by its UTF-8 bytes. */
function bytesOf({ SK }: Item): Buffer {
  return Buffer.from(String(SK));
}

function idOf({ PK, SK }: Key): string {
  return JSON.stringify([PK, SK]);
}

function groupsOf<T>(items: readonly T[], keyOf: (item: T) => string): T[][] {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item)) ?? [];
    group.push(item);
    groups.set(keyOf(item), group);
  }
  return [...groups.values()];
}

function chunksOf<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, nth) =>
    items.slice(nth * size, (nth + 1) * size),
  );
}

/** Collects the calls of one turn of the event loop and makes them together. @param work - returns a result for each call, in order */
function gathered<In, Out>(
  work: (calls: readonly In[]) => Promise<readonly Promise<Out>[]>,
): (call: In) => Promise<Out> {
  let waiting: { readonly call: In; readonly resolve: (made: Promise<Out>) => void }[] = [];
  const make = () => {
    const batch = waiting;
    waiting = [];
    const made = work(batch.map(({ call }) => call));
    for (const [index, { resolve }] of batch.entries())
      resolve(made.then((results) => results[index] as Promise<Out>));
  };
  return (call) =>
    new Promise((resolve) => {
      if (waiting.length === 0) setImmediate(make);
      waiting.push({ call, resolve });
    });
}
