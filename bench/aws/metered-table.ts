import type { Item } from '../../lambdas/runtime/store/table.ts';
import { type Attributes, equal } from '../../testing/attribute-values.ts';
import { createStore, type Store, toAttributes } from '../../testing/memory-store.ts';
import { createStream } from '../../testing/memory-stream.ts';
import { ValidationException } from '../../testing/validation-exception.ts';
import { createOrderedView, type OrderedView } from './ordered-view.ts';

/** The definition of a table in a metered AWS. Its key attributes, and its indexes' partition keys, are strings. */
export interface TableShape {
  readonly name: string;
  /** The names of the key attributes: the partition key and, if there is one, the sort key. */
  readonly keys: readonly [partition: string, sort?: string];
  /** Global secondary indexes; an item without an index's keys is not in the index. */
  readonly indexes?: readonly {
    readonly name: string;
    readonly keys: readonly [partition: string, sort?: string];
    /** The attributes that an entry copies: all of them, or only the keys of the index and of the table. @default 'all' */
    readonly projects?: 'all' | 'keys';
  }[];
}

/** One table with its indexes and its stream. */
export interface MeteredTable {
  readonly store: Store;
  /** @throws ValidationException if the index does not exist */
  view(indexName?: string): OrderedView;
  /**
   * Puts, changes or deletes an item.
   *
   * @returns the write units of the indexes
   */
  apply(before: Attributes | undefined, after: Attributes | undefined, now: number): number;
  /** Puts initial items, without counting them or adding them to the stream. */
  seed(items: Iterable<Item>): void;
  /** The INSERT records since the last call. */
  takeInserts(): ReturnType<typeof createStream>['records'][number][];
}

/** Creates an empty table. Its keys are strings. */
export function createMeteredTable({ name, keys, indexes = [] }: TableShape): MeteredTable {
  const store = createStore(name, keys, true);
  const rows = createOrderedView(keys, store);
  const views = indexes.map((index) => ({
    name: index.name,
    view: createOrderedView(index.keys, store, index.projects === 'keys'),
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
      inserts = createStream(); // its sequence numbers start over: they distinguish records within a batch only
      return [...taken.records];
    },
  };
}
