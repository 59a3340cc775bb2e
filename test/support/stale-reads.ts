import type { Table } from '../../lambdas/runtime/store/table.ts';

/** A table whose eventually consistent reads lag behind: they find nothing. */
export function staleReads<T extends Table>(table: T): T {
  return {
    ...table,
    get: async (key, options) => (options?.consistent ? table.get(key, options) : undefined),
    getEach: async (keys, options) =>
      options?.consistent ? table.getEach(keys, options) : keys.map(() => undefined),
    query: async (query) => (query.consistent ? table.query(query) : { items: [] }),
  };
}
