import type { OperationRow } from '../../lambdas/runtime/store/operation-record.ts';
import { isUnreadable } from '../../lambdas/runtime/store/stored-rows.ts';
import type { Key } from '../../lambdas/runtime/store/table.ts';
import type { StoredRows } from './stored-rows.ts';

/** A change that an operator made. */
export type Operation = Omit<OperationRow, keyof Key | 'schema' | 'expiresAt'>;

/** The changes of a range of time. */
export interface Operations {
  /** Newest first. */
  readonly operations: readonly Operation[];
  /** There are more than were read. */
  readonly more: boolean;
  /** Entries of these months that cannot be read. */
  readonly unreadable: number;
}

/** Reads the changes that operators made in a range of time. */
export async function readOperations(
  stored: Pick<StoredRows, 'operations'>,
  since: number,
  until: number,
): Promise<Operations> {
  const { items: rows, more } = await stored.operations.between({ since, until });
  const items = rows.filter(
    (row): row is OperationRow => !isUnreadable(row) && row.at >= since && row.at <= until,
  );
  return {
    operations: items.sort((a, b) => b.at - a.at),
    more,
    unreadable: rows.filter(isUnreadable).length,
  };
}
