import { dynamoRows } from '../../cli/deployment/dynamo-rows.ts';
import type { StoredRows } from '../../cli/deployment/stored-rows.ts';
import type { Table } from '../../lambdas/runtime/store/table.ts';

/** Adds the rows of a table, as the command reads them. */
export function withStored<D extends { readonly table: Table }>(
  deps: D,
): D & { readonly stored: StoredRows } {
  return { ...deps, stored: dynamoRows(deps.table) };
}
