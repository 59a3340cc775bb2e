import { DAY_MS } from '../../lambdas/runtime/base/units.ts';
import { operationKey } from '../../lambdas/runtime/store/keys.ts';
import type { OperationRow } from '../../lambdas/runtime/store/operation-record.ts';
import { isUnreadable, readOperation } from '../../lambdas/runtime/store/stored-rows.ts';
import type { Key, Table } from '../../lambdas/runtime/store/table.ts';
import { eachOf, readPartition } from './rows-reader.ts';

/** The most changes that are read of one month. */
const CHANGES_MAX = 10_000;

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
export async function readOperations(table: Table, since: number, until: number): Promise<Operations> {
  const months = await eachOf(monthsOf(since, until), (pk) => readPartition(table, { pk }, CHANGES_MAX));
  const rows = months.flatMap((month) => month.items.map(readOperation));
  const items = rows.filter(
    (row): row is OperationRow => !isUnreadable(row) && row.at >= since && row.at <= until,
  );
  return {
    operations: items.sort((a, b) => b.at - a.at),
    more: months.some((month) => month.more),
    unreadable: rows.filter(isUnreadable).length,
  };
}

/** The partitions of the months that overlap a range of time. */
function monthsOf(since: number, until: number): string[] {
  const months = new Set<string>();
  for (let at = since; at < until; at += DAY_MS) months.add(operationKey(at, '').PK);
  return [...months.add(operationKey(until, '').PK)];
}
