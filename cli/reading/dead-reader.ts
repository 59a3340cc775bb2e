import { type DeadPointer, deadKey } from '../../lambdas/runtime/store/rows.ts';
import { readDeadPointer, type UnreadableRow } from '../../lambdas/runtime/store/stored-rows.ts';
import type { Item, Table } from '../../lambdas/runtime/store/table.ts';
import { eachOf, type Found, readPartition } from './rows-reader.ts';

/** The pointers at the DEAD events. @param max - at most this many of one shard */
export async function readDeadPointers(
  table: Table,
  shards: readonly number[],
  max: number,
): Promise<Found<DeadPointer | UnreadableRow>> {
  const found = await eachOf(shards, (shard) => readPartition(table, { pk: deadKey(shard, '').PK }, max));
  return {
    items: found.flatMap(({ items }) => items.map((item: Item) => readDeadPointer(item))),
    more: found.some(({ more }) => more),
  };
}
