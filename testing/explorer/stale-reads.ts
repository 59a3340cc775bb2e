import type { Item, Key, Page, Query } from '../../lambdas/runtime/store/table.ts';
import { byteOrder } from '../attribute-values.ts';
import type { MemoryTable } from '../memory-table.ts';
import type { CallFault } from './call-outcomes.ts';
import { shortKey } from './describe.ts';
import type { PastItem, PastItems } from './past-items.ts';
import { digest, equalItems } from './world-digest.ts';

/** The earlier states of an item that an eventually consistent `get` may return. */
export function staleGets(memory: MemoryTable, past: PastItems, key: Key): CallFault<Item | undefined>[] {
  return distinct(past.of(key), (item) => item, memory.item(key)).map(({ writesBehind, item }) => ({
    label: `a stale answer, ${writesText(writesBehind)}`,
    perform: async () => item,
  }));
}

/** The pages that an eventually consistent `query` may return: each contains one of the items in an earlier state. */
export function staleQueries(memory: MemoryTable, past: PastItems, query: Query): CallFault<Page>[] {
  const { pk, skPrefix = '', where = {}, limit, cursor } = query;
  // On a page of a longer partition, the items on the page depend on each other.
  if (limit !== undefined || cursor !== undefined) return [];
  const found = (item: Item | undefined) => (item !== undefined && matches(item, where) ? item : undefined);
  const keys = new Map(past.inPartition(pk).map(({ key }) => [key.SK, key]));
  return [...keys.values()]
    .filter(({ SK }) => SK.startsWith(skPrefix))
    .flatMap((key) => distinct(past.of(key), found, found(memory.item(key))))
    .map(({ key, writesBehind, item }) => ({
      label: `a stale answer, ${shortKey(key)} ${writesText(writesBehind)}`,
      perform: async () => {
        const page = await memory.query(query);
        const others = page.items.filter(({ SK }) => SK !== key.SK);
        const items = [...others, found(item) ?? []].flat();
        return { ...page, items: items.sort((a, b) => byteOrder(String(a.SK), String(b.SK))) };
      },
    }));
}

/**
 * The states that a read can distinguish from the present one and from each other.
 *
 * @param seen - the part of an item that the read returns
 */
function distinct(
  past: readonly PastItem[],
  seen: (item: Item | undefined) => Item | undefined,
  now: Item | undefined,
): PastItem[] {
  const known = new Set([digest(now)]);
  return past.filter(({ item }) => {
    const text = digest(seen(item));
    if (known.has(text)) return false;
    known.add(text);
    return true;
  });
}

function matches(item: Item, where: Item): boolean {
  return Object.entries(where).every(([name, value]) => equalItems(item[name], value));
}

function writesText(writesBehind: number): string {
  return writesBehind === 1 ? 'one write behind' : `${writesBehind} writes behind`;
}
