import type { Item, Key } from '../../lambdas/runtime/store/table.ts';
import { equalItems } from './world-digest.ts';

/** One change of one item. */
export interface Change {
  readonly key: Key;
  readonly before: Item | undefined;
  readonly after: Item | undefined;
}

/** The number of writes that an eventually consistent read may lag behind. */
const WRITES_BEHIND_MAX = 2;

/** An item as it was before its last writes. */
export interface PastItem {
  readonly key: Key;
  /** The number of writes that a reader does not see yet, from 1. */
  readonly writesBehind: number;
  /** The item at that time; `undefined` if it did not exist. */
  readonly item: Item | undefined;
}

/** The earlier states of a table's items, which an eventually consistent read may return. */
export interface PastItems {
  /** Records the state of an item before a write. */
  changed(change: Change): void;
  /** The earlier states of one item, latest first. */
  of(key: Key): readonly PastItem[];
  inPartition(pk: string): readonly PastItem[];
  /** All earlier states, as a value that determines how a schedule continues. */
  state(): unknown;
}

/** Creates the history of one table. */
export function createPastItems(): PastItems {
  const partitions = new Map<string, Map<string, readonly (Item | undefined)[]>>();

  function pastOf(key: Key, states: readonly (Item | undefined)[]): PastItem[] {
    return states.map((item, index) => ({ key, writesBehind: index + 1, item }));
  }

  return {
    changed: ({ key, before, after }) => {
      if (equalItems(before, after)) return;
      const partition = partitions.get(key.PK) ?? new Map<string, readonly (Item | undefined)[]>();
      partitions.set(key.PK, partition);
      partition.set(key.SK, [before, ...(partition.get(key.SK) ?? [])].slice(0, WRITES_BEHIND_MAX));
    },
    of: (key) => pastOf(key, partitions.get(key.PK)?.get(key.SK) ?? []),
    inPartition: (pk) =>
      [...(partitions.get(pk) ?? [])].flatMap(([SK, states]) => pastOf({ PK: pk, SK }, states)),
    state: () =>
      [...partitions]
        .flatMap(([PK, items]) => [...items].map(([SK, states]) => [`${PK} ${SK}`, states] as const))
        .sort(([a], [b]) => (a < b ? -1 : 1)),
  };
}
