import { itemBytes } from '../../lambdas/runtime/store/item-size.ts';
import { type Attributes, equal, order } from '../../testing/attribute-values.ts';
import { type KeyNames, type Store, toItem } from '../../testing/memory-store.ts';
import { indexWriteUnits } from './billing.ts';

/** The definition of a table or an index, for reading in order. */
export interface OrderedView {
  readonly keyNames: readonly string[];
  /** The items of one partition by their sort keys; the same array until an item is added or removed. */
  partition(value: string): readonly Attributes[];
  /** The items of all partitions, the partitions by their keys. */
  all(): readonly Attributes[];
  /** Compares the positions of two items of one partition. */
  compare(a: Attributes, b: Attributes): number;
  /** The key at the end of a page: the view's own attributes and the table's. */
  cursor(item: Attributes): Attributes;
}

/** The size of each item, cached because items never change in place. */
const sizes = new WeakMap<Attributes, number>();

/** The size of a stored item; 0 if it does not exist. */
export function storedBytes(item: Attributes | undefined): number {
  if (item === undefined) return 0;
  const bytes = sizes.get(item) ?? itemBytes(toItem(item));
  sizes.set(item, bytes);
  return bytes;
}

interface Partition {
  readonly items: Map<string, Attributes>;
  /** The entries in order, sorted at the first read after a change. */
  sorted: Attributes[] | undefined;
}

/** A table or an index: the items that have its keys, by partition; complete, or only the keys for an index. */
export function createOrderedView(keys: KeyNames, store: Store, keysOnly = false) {
  const [partitionName] = keys;
  const partitions = new Map<string, Partition>();
  let everything: Attributes[] | undefined;
  const { keyNames, holds, compare, keysOf, entry } = createEntries(keys, store, keysOnly);

  const partitionOf = (item: Attributes) => item[partitionName]?.S ?? '';

  function remove(item: Attributes): void {
    const value = partitionOf(item);
    const partition = partitions.get(value);
    partition?.items.delete(store.id(item));
    if (partition) partition.sorted = undefined;
    if (partition?.items.size === 0) partitions.delete(value);
  }

  function put(item: Attributes): void {
    const partition = partitions.get(partitionOf(item)) ?? { items: new Map(), sorted: undefined };
    partitions.set(partitionOf(item), partition);
    partition.items.set(store.id(item), entry(item));
    partition.sorted = undefined;
  }

  function sortedItems(partition: Partition): Attributes[] {
    partition.sorted ??= [...partition.items.values()].sort(compare);
    return partition.sorted;
  }

  return {
    keyNames,
    compare,
    cursor: keysOf,
    partition: (value: string) => {
      const partition = partitions.get(value);
      return partition === undefined ? [] : sortedItems(partition);
    },
    all: () => {
      everything ??= [...partitions.entries()]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .flatMap(([, partition]) => sortedItems(partition));
      return everything;
    },
    replace: (before: Attributes | undefined, after: Attributes | undefined) => {
      everything = undefined;
      if (before && holds(before)) remove(before);
      if (after && holds(after)) put(after);
    },
    /** The write units of a change in this view. */
    units: (before: Attributes | undefined, after: Attributes | undefined, changed: boolean) => {
      const bytes = (item: Attributes | undefined) => (item && holds(item) ? storedBytes(entry(item)) : 0);
      const [had, has] = [bytes(before), bytes(after)];
      const keyChanged = keyNames.some((name) => !equal(before?.[name], after?.[name]));
      return indexWriteUnits({
        before: had,
        after: has,
        keyChanged,
        changed: changed && had + has > 0 && (keyChanged || !keysOnly),
      });
    },
  };
}

/** The projection and the order of a view. */
function createEntries([partitionName, sortName]: KeyNames, store: Store, keysOnly: boolean) {
  const keyNames = sortName === undefined ? [partitionName] : [partitionName, sortName];
  const cursorNames = new Set([...keyNames, ...store.keyNames]);
  const keysOf = (item: Attributes): Attributes =>
    Object.fromEntries([...cursorNames].flatMap((name) => (item[name] ? [[name, item[name]]] : [])));
  return {
    keyNames,
    keysOf,
    entry: (item: Attributes) => (keysOnly ? keysOf(item) : item),
    holds: (item: Attributes) => keyNames.every((name) => item[name] !== undefined),
    compare: (a: Attributes, b: Attributes): number => {
      for (const name of [...keyNames.slice(1), ...store.keyNames]) {
        const [left, right] = [a[name], b[name]];
        const sign = left && right && order(left, right);
        if (sign) return sign;
      }
      return 0;
    },
  };
}
