import { MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import { pendingRow, pendingSince } from '../../../lambdas/runtime/outbox/pending-row.ts';
import {
  minutesToSweep,
  SWEEP_AGE_MAX_MS,
  youngestMinutes,
} from '../../../lambdas/runtime/relay/minutes-to-sweep.ts';
import { EVENT_PREFIX, unsettledKey } from '../../../lambdas/runtime/store/keys.ts';
import { outboxPartition } from '../../../lambdas/runtime/store/outbox-partition.ts';
import type { Item, Table } from '../../../lambdas/runtime/store/table.ts';
import {
  eachOf,
  isNotDue,
  partitionsOf,
  readPartition,
  type SweepReading,
} from '../../deployment/rows-reader.ts';

/** The most outbox partitions that are read: reached only if the sweep has been stopped for days. */
const PARTITIONS_MAX = 20_000;

/** The most rows of a partition that are counted. */
const ROWS_MAX = 10_000;

/**
 * Reads the PENDING events that are due: those in minutes that the sweep has not read yet, or that it left unsettled. Every other minute
 * had none when the sweep read it last.
 */
export async function readPending(
  { table, now }: { readonly table: Table; readonly now: number },
  { shards, sweptTo }: SweepReading,
  createdAt: number,
) {
  const unsettled = await eachOf(shards, async (shard) => {
    const { PK } = unsettledKey(shard, '');
    const { items } = await readPartition(table, { pk: PK }, ROWS_MAX);
    return items.map(({ SK }) => outboxPartition(String(SK), shard));
  });
  const since = sweptSince(sweptTo, createdAt, now);
  // Years of minutes would not fit into memory.
  const from = Math.max(since, now - PARTITIONS_MAX * MINUTE_MS);
  const minutes = [...youngestMinutes(now), ...minutesToSweep(from, now)];
  const all = new Set([...unsettled.flat(), ...minutes.flatMap((minute) => partitionsOf(minute, shards))]);
  const partitions = [...all].slice(0, PARTITIONS_MAX);
  const found = await eachOf(partitions, (pk) =>
    readPartition(table, { pk, skPrefix: EVENT_PREFIX, where: { status: 'PENDING' } }, ROWS_MAX),
  );
  return {
    items: found.flatMap((page) => page.items.filter((item) => !isNotDue(item, now))),
    more: from > since || all.size > partitions.length || found.some((page) => page.more),
  };
}

/** The start of the range that the sweep reads next, by the sweep's own rules. */
function sweptSince(sweptTo: number | undefined, createdAt: number, now: number): number {
  if (sweptTo === undefined) return createdAt;
  return sweptTo > now + MINUTE_MS ? now - SWEEP_AGE_MAX_MS : sweptTo;
}

/** The age of the oldest event, including those whose row cannot be read. */
export function oldestMs(
  rows: readonly Item[],
  now: number,
  since: (row: Item) => number | undefined,
): number {
  const times = rows.flatMap((row) => since(row) ?? []);
  return times.reduce((age, time) => Math.max(age, now - time), 0);
}

/** The time since which a row has been PENDING: a requeued event waits from then on. */
export function waitingSince(row: Item): number | undefined {
  return pendingRow(row)?.since ?? pendingSince(row);
}
