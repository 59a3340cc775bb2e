import { deadKey } from '../../lambdas/runtime/store/keys.ts';
import type { DeadPointer } from '../../lambdas/runtime/store/outbox-row.ts';
import { readDeadPointer, type UnreadableRow } from '../../lambdas/runtime/store/stored-rows.ts';
import type { Table } from '../../lambdas/runtime/store/table.ts';
import { eachOf, type PartialList, readPartition } from './rows-reader.ts';

/** Reads the pointers to the DEAD events. @param max - at most this many of each shard */
export async function readDeadPointers(
  table: Table,
  shards: readonly number[],
  max: number,
): Promise<PartialList<DeadPointer | UnreadableRow>> {
  const found = await eachOf(shards, (shard) => readPartition(table, { pk: deadKey(shard, '').PK }, max));
  return {
    items: found.flatMap(({ items }) => items.map((item) => readDeadPointer(item))),
    more: found.some(({ more }) => more),
  };
}
