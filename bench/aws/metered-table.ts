import { itemBytes } from '../../lambdas/runtime/store/item-size.ts';
import type { Item } from '../../lambdas/runtime/store/table.ts';
import { type Attributes, equal, order } from '../../testing/attribute-values.ts';
import { createStore, type KeyNames, type Store, toAttributes, toItem } from '../../testing/memory-store.ts';
import { createStream } from '../../testing/memory-stream.ts';
import { ValidationException } from '../../testing/validation-exception.ts';
import { indexWriteUnits } from './billing.ts';
import type { TableShape } from './metered-aws.ts';

/** A table or an index, to be read in order. */
export interface OrderedView {
  readonly keyNames: readonly string[];
  /** The items of one partition by their sort keys; the same array until one comes or goes. */
  partition(value: string): readonly Attributes[];
  /** The items of all partitions, the partitions by their keys. */
  all(): readonly Attributes[];
  /** Where an item stands beside another one of the same partition. */
  compare(a: Attributes, b: Attributes): number;
  /** The key that a page ends with: the view's own attributes and the table's. */
  cursor(item: Attributes): Attributes;
}

/** One table with its indexes and its stream. */
export interface MeteredTable {
  readonly store: Store;
  /** @throws ValidationException when there is no such index */
  view(indexName?: string): OrderedView;
  /**
   * Puts, changes or deletes an item.
   *
   * @returns the write units of the indexes
   */
  apply(before: Attributes | undefined, after: Attributes | undefined, now: number): number;
  /** Puts items that were there all along: nothing is counted, and the stream does not have them. */
  seed(items: Iterable<Item>): void;
  /** The INSERT records since the last call. */
  takeInserts(): ReturnType<typeof createStream>['records'][number][];
}

/** What each item takes; items are never changed in place. */
const sizes = new WeakMap<Attributes, number>();

/** The size of a stored item, 0 for none. */
export function storedBytes(item: Attributes | undefined): number {
  if (item === undefined) return 0;
  const bytes = sizes.get(item) ?? itemBytes(toItem(item));
  sizes.set(item, bytes);
  return bytes;
}

/** Makes an empty table. Its keys are texts. */
export function createMeteredTable({ name, keys, indexes = [] }: TableShape): MeteredTable {
  const store = createStore(name, keys, true);
  const rows = createView(keys, store);
  const views = indexes.map((index) => ({
    name: index.name,
    view: createView(index.keys, store, index.projects === 'keys'),
  }));
  let inserts = createStream();

  function change(before: Attributes | undefined, after: Attributes | undefined): void {
    if (after) store.put(after);
    else if (before) store.delete(store.keyOf(before));
    for (const { replace } of [rows, ...views.map(({ view }) => view)]) replace(before, after);
  }

  return {
    store,
    view: (indexName) => {
      if (indexName === undefined) return rows;
      const found = views.find((index) => index.name === indexName);
      if (found) return found.view;
      throw new ValidationException(`The table does not have the specified index: ${indexName}`);
    },
    apply: (before, after, now) => {
      change(before, after);
      if (before === undefined) inserts.add({ store, before, after, now });
      const changed = !equal(before && { M: before }, after && { M: after });
      return views.reduce((units, { view }) => units + view.units(before, after, changed), 0);
    },
    seed: (items) => {
      for (const item of items) {
        const attributes = toAttributes(item);
        change(store.get(attributes), attributes);
      }
    },
    takeInserts: () => {
      const taken = inserts;
      inserts = createStream(); // its numbers begin again: they tell records apart within a batch only
      return [...taken.records];
    },
  };
}

interface Partition {
  readonly items: Map<string, Attributes>;
  /** In order; made when somebody reads. */
  sorted: Attributes[] | undefined;
}

/** A table or an index: the items that have its keys, by partition; whole, or of an index the keys alone. */
function createView([partitionName, sortName]: KeyNames, store: Store, keysOnly = false) {
  const partitions = new Map<string, Partition>();
  let everything: Attributes[] | undefined;
  const keyNames = sortName === undefined ? [partitionName] : [partitionName, sortName];
  const cursorNames = new Set([...keyNames, ...store.keyNames]);

  const inView = (item: Attributes | undefined) =>
    item !== undefined && keyNames.every((name) => item[name] !== undefined);

  function compare(a: Attributes, b: Attributes): number {
    for (const name of [...keyNames.slice(1), ...store.keyNames]) {
      const [left, right] = [a[name], b[name]];
      const sign = left && right && order(left, right);
      if (sign) return sign;
    }
    return 0;
  }

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
    partition.items.set(store.id(item), projected(item));
    partition.sorted = undefined;
  }

  function keysOf(item: Attributes): Attributes {
    return Object.fromEntries([...cursorNames].flatMap((name) => (item[name] ? [[name, item[name]]] : [])));
  }

  function projected(item: Attributes): Attributes {
    return keysOnly ? keysOf(item) : item;
  }

  /** The size of an item's entry, 0 when it has none. */
  function entryBytes(item: Attributes | undefined): number {
    return item && inView(item) ? storedBytes(projected(item)) : 0;
  }

  function partitionOf(item: Attributes): string {
    return item[partitionName]?.S ?? '';
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
      if (before && inView(before)) remove(before);
      if (after && inView(after)) put(after);
    },
    /** What a change costs here. */
    units: (before: Attributes | undefined, after: Attributes | undefined, changed: boolean) => {
      const [had, has] = [entryBytes(before), entryBytes(after)];
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
