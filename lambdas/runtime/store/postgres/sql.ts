export type { Database, Sql, SqlResult, SqlRow } from '../sql/database.ts';

/**
 * Returns the SQLSTATE of an error, e.g. `23505`; `undefined` if it has none, such as that of a lost connection. Drizzle and others keep it
 * in `cause`, TypeORM in `driverError`, Prisma in `meta`.
 */
export function sqlState(error: unknown): string | undefined {
  try {
    return stateIn(error);
  } catch {
    return undefined; // an error of a handler whose members cannot be read: its connection must be released also then
  }
}

function stateIn(error: unknown): string | undefined {
  let next: unknown = error;
  for (let depth = 0; depth < 5 && typeof next === 'object' && next !== null; depth += 1) {
    const { code, cause, driverError, meta, originalCode } = next as Record<string, unknown>;
    for (const found of [code, originalCode])
      if (typeof found === 'string' && /^[0-9A-Z]{5}$/.test(found) && !/^P\d/.test(found)) return found;
    const inner = Object(meta) as { readonly code?: unknown; readonly driverAdapterError?: unknown };
    if (typeof inner.code === 'string') return inner.code;
    next = driverError ?? inner.driverAdapterError ?? cause;
  }
  return undefined;
}

/**
 * Returns true if a statement, or its transaction, may succeed when it is repeated: a serialization failure (40001), a deadlock (40P01), a
 * lock timeout (55P03), or a server that is full, starting, stopping or, after a failover, read-only (classes 53 and 57, 25006).
 */
export function isRetryable(error: unknown): boolean {
  const state = sqlState(error) ?? '';
  return /^(40001|40P01|55P03|53...|57P0.|57014|25P03|25006|08...)$/.test(state);
}
