import { itemBytes } from '../../lambdas/runtime/store/item-size.ts';
import type { Item } from '../../lambdas/runtime/store/table.ts';
import { type Attributes, equal, order } from '../../testing/attribute-values.ts';
import { createStore, type KeyNames, type Store, toAttributes, toItem } from '../../testing/memory-store.ts';
import { createStream } from '../../testing/memory-stream.ts';
import { ValidationException } from '../../testing/validation-exception.ts';
import { indexWriteUnits } from './billing.ts';

/** The definition of a table in a metered AWS. Its key attributes, and its indexes' partition keys, are strings. */
export interface TableShape {
  readonly name: string;
  readonly keys: KeyNames;
  /** Global secondary indexes; an item without an index's keys is not in the index. */
  readonly indexes?: readonly IndexShape[];
}

interface IndexShape {
  readonly name: string;
  readonly keys: KeyNames;
  /** The attributes that an entry copies: all of them, or only the keys of the index and of the table. @default 'all' */
  readonly projects?: 'all' | 'keys';
}

/** A table or an index, for reading in order. */
export interface TableView {
  readonly partitionName: string;
  readonly keyNames: readonly string[];
  /** The entries by partition and sort key. @param partition - @default all of them */
  entries(partition?: string): readonly Attributes[];
  compare(a: Attributes, b: Attributes): number;
  /** The key at the end of a page: the view's own attributes and the table's. */
  cursor(item: Attributes): Attributes;
}

export type MeteredTable = ReturnType<typeof createMeteredTable>;

/** The size of each item, cached because items never change in place. */
const sizes = new WeakMap<Attributes, number>();

/** The size of a stored item; 0 if it does not exist. */
export function storedBytes(item: Attributes | undefined): number {
  if (item === undefined) return 0;
  const bytes = sizes.get(item) ?? itemBytes(toItem(item));
  sizes.set(item, bytes);
  return bytes;
}

/** Creates an empty table with its indexes and its stream. */
export function createMeteredTable({ name, keys, indexes = [] }: TableShape) {
  const store = createStore(name, keys, true);
  const rows = createView(store, { name, keys }, true);
  const views = new Map(indexes.map((index) => [index.name, createView(store, index)]));
  let inserts = createStream();

  function change(before: Attributes | undefined, after: Attributes | undefined): void {
    if (after) store.put(after);
    else if (before) store.delete(store.keyOf(before));
    for (const view of [rows, ...views.values()]) view.changed();
  }

  return {
    store,
    view: (indexName?: string): TableView => {
      const found = indexName === undefined ? rows : views.get(indexName);
      if (found) return found;
      throw new ValidationException(`The table does not have the specified index: ${indexName}`);
    },
    /** Puts, changes or deletes an item. @returns the write units of the indexes */
    apply: (before: Attributes | undefined, after: Attributes | undefined, now: number): number => {
      change(before, after);
      if (before === undefined) inserts.add({ store, before, after, now });
      if (equal(before && { M: before }, after && { M: after })) return 0;
      return [...views.values()].reduce((units, view) => units + view.writeUnits(before, after), 0);
    },
    /** Puts initial items, without counting them or adding them to the stream. */
    seed: (items: Iterable<Item>): void => {
      for (const item of items) change(undefined, toAttributes(item));
    },
    /** The INSERT records since the last call. */
    takeInserts: () => {
      const taken = inserts;
      inserts = createStream(); // its sequence numbers start over: they distinguish records within a batch only
      return [...taken.records];
    },
  };
}

/** The table itself, or an index of it. */
function createView(store: Store, { keys, projects }: IndexShape, isTable = false) {
  const [partitionName, sortName] = keys;
  const keyNames = sortName === undefined ? [partitionName] : [partitionName, sortName];
  const cursorNames = new Set([...keyNames, ...store.keyNames]);
  /** The entries that were read since the last change. */
  const sorted = new Map<string | undefined, readonly Attributes[]>();
  const holds = (item: Attributes) => keyNames.every((name) => item[name] !== undefined);
  const cursor = (item: Attributes): Attributes =>
    Object.fromEntries([...cursorNames].flatMap((name) => (item[name] ? [[name, item[name]]] : [])));
  const entry = (item: Attributes) => (projects === 'keys' ? cursor(item) : item);

  function compare(a: Attributes, b: Attributes): number {
    for (const name of cursorNames) {
      const [left, right] = [a[name], b[name]];
      const sign = left && right && order(left, right);
      if (sign) return sign;
    }
    return 0;
  }

  function read(partition: string | undefined): readonly Attributes[] {
    if (isTable && partition !== undefined) return store.partition(partition);
    const items = store.all().filter((item) => holds(item));
    const chosen = items.filter((item) => partition === undefined || item[partitionName]?.S === partition);
    return chosen.map(entry).sort(compare);
  }

  return {
    partitionName,
    keyNames,
    compare,
    cursor,
    entries: (partition?: string) => {
      const found = sorted.get(partition) ?? read(partition);
      sorted.set(partition, found);
      return found;
    },
    changed: () => sorted.clear(),
    /** The write units of a change, if this is an index. */
    writeUnits: (before: Attributes | undefined, after: Attributes | undefined) => {
      const bytes = (item: Attributes | undefined) => (item && holds(item) ? storedBytes(entry(item)) : 0);
      const [had, has] = [bytes(before), bytes(after)];
      const keyChanged = keyNames.some((name) => !equal(before?.[name], after?.[name]));
      return indexWriteUnits({
        before: had,
        after: has,
        keyChanged,
        changed: had + has > 0 && (keyChanged || projects !== 'keys'),
      });
    },
  };
}
