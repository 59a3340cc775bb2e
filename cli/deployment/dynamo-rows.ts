import { DAY_MS, MINUTE_MS } from '../../lambdas/runtime/base/units.ts';
import { dynamoInboxRows } from '../../lambdas/runtime/operations/inbox-rows.ts';
import { dynamoOutboxRows, storedEvent } from '../../lambdas/runtime/operations/outbox-rows.ts';
import {
  minutesToSweep,
  SWEEP_AGE_MAX_MS,
  youngestMinutes,
} from '../../lambdas/runtime/relay/minutes-to-sweep.ts';
import { readLastSequence } from '../../lambdas/runtime/store/dynamo/last-sequence.ts';
import {
  deadKey,
  EVENT_PREFIX,
  failedKey,
  operationKey,
  rejectedKey,
  unsettledKey,
} from '../../lambdas/runtime/store/keys.ts';
import { outboxPartition } from '../../lambdas/runtime/store/outbox-partition.ts';
import {
  isUnreadable,
  readable,
  readDeadPointer,
  readFailedHint,
  readOperation,
  readRejectedPointer,
} from '../../lambdas/runtime/store/stored-rows.ts';
import type { Item, Query, Table } from '../../lambdas/runtime/store/table.ts';
import { eachOf, eachPartition, isNotDue, type PartialList, partitionsOf } from './rows-reader.ts';
import type { StoredRows, TimeRange } from './stored-rows.ts';

/** The most outbox partitions that are read: reached only if the sweep has been stopped for days. */
const PARTITIONS_MAX = 20_000;

/** The most PENDING events of a partition that are counted, and the most unsettled minutes of a shard. */
const PENDING_MAX = 10_000;

/** The most changes that are read of one month. */
const CHANGES_MAX = 10_000;

/** The rows in the table of a Mailroom. */
export function dynamoRows(table: Table): StoredRows {
  const outbox = dynamoOutboxRows(table);
  const inbox = dynamoInboxRows(table);

  return {
    outbox: { ...outbox, pending: (sweep, now) => pendingIn(table, sweep, now) },
    inbox: {
      ...inbox,
      hinted: async (consumer, max) => {
        const { items, more } = await readPartition(table, { pk: failedKey(consumer, '').PK }, max);
        const hints = items.map((item) => {
          const hint = readFailedHint(item);
          return { consumer, eventId: hint.SK, failedAt: isUnreadable(hint) ? undefined : hint.failedAt };
        });
        const found = await inbox.byEvents(hints, ({ eventId, failedAt }, row) => ({
          eventId,
          failedAt,
          row,
        }));
        return { items: found, more };
      },
      lastSequence: (key) => readLastSequence({ table }, key),
      failedAt: async (consumer, eventId) => {
        const item = await table.get(failedKey(consumer, eventId));
        return item && readable(readFailedHint(item))?.failedAt;
      },
      idsFrom: async (consumer, prefix, max) => {
        const keys = [rejectedKey(consumer, prefix), failedKey(consumer, prefix)];
        const pages = await eachOf(keys, ({ PK: pk, SK: skPrefix }) =>
          readPartition(table, { pk, skPrefix, limit: max }, max),
        );
        return pages.flatMap(({ items }) => items.map(({ SK }) => String(SK)));
      },
    },
    deadLetters: {
      dead: async (shards, max) => {
        const found = await eachPartition(shards, (shard) =>
          readPartition(table, { pk: deadKey(shard, '').PK }, max),
        );
        return joined(found, readDeadPointer);
      },
      rejected: async (consumer, max) =>
        joined([await readPartition(table, { pk: rejectedKey(consumer, '').PK }, max)], readRejectedPointer),
      isRejected: async (consumer, eventId) =>
        (await table.get(rejectedKey(consumer, eventId), { consistent: true })) !== undefined,
    },
    operations: {
      between: async (range) => {
        const months = await eachOf(monthsOf(range), (pk) => readPartition(table, { pk }, CHANGES_MAX));
        return joined(months, readOperation);
      },
    },
    connectors: async () => [],
    createdAt: () => table.createdAt(),
  };
}

/**
 * Reads the PENDING events that are due: those in minutes that the sweep has not read yet, or that it left unsettled. Every other minute
 * had none when the sweep read it last.
 */
async function pendingIn(
  table: Table,
  { shards, sweptAt }: Parameters<StoredRows['outbox']['pending']>[0],
  now: number,
): ReturnType<StoredRows['outbox']['pending']> {
  // The range that the sweep reads next, by the sweep's own rules.
  const since = sweptAt > now + MINUTE_MS ? now - SWEEP_AGE_MAX_MS : sweptAt;
  // Years of minutes would not fit into memory.
  const from = Math.max(since, now - PARTITIONS_MAX * MINUTE_MS);
  const minutes = [...youngestMinutes(now), ...minutesToSweep(from, now)];
  const query = { skPrefix: EVENT_PREFIX, where: { status: 'PENDING' } };
  const readAll = (pks: readonly string[]) =>
    eachPartition(pks, (pk) => readPartition(table, { ...query, pk }, PENDING_MAX));
  const due = [...new Set(minutes)].flatMap((minute) => partitionsOf(minute, shards));
  const next = due.slice(0, PARTITIONS_MAX);
  const [unsettled, young] = await Promise.all([unsettledIn(table, shards), readAll(next)]);
  const others = new Set(unsettled);
  for (const pk of next) others.delete(pk);
  const left = [...others].slice(0, PARTITIONS_MAX - next.length);
  const found = [...young, ...(await readAll(left))];
  return {
    items: found.flatMap(({ items }) =>
      items.flatMap((item) => {
        const event = storedEvent(item);
        return event === undefined || isNotDue(event, now) ? [] : [{ ...event, envelope: '' }];
      }),
    ),
    more:
      from > since || others.size > left.length || due.length > next.length || found.some(({ more }) => more),
  };
}

/** The partitions of the minutes that the sweep left unsettled. */
async function unsettledIn(table: Table, shards: readonly number[]): Promise<string[]> {
  const found = await eachPartition(shards, async (shard) => {
    const { PK } = unsettledKey(shard, '');
    const { items } = await readPartition(table, { pk: PK }, PENDING_MAX);
    return items.map(({ SK }) => outboxPartition(String(SK), shard));
  });
  return found.flat();
}

/** Reads up to `max` items of a partition. */
async function readPartition(table: Table, query: Query, max: number): Promise<PartialList<Item>> {
  const items: Item[] = [];
  let cursor: Item | undefined;
  do {
    const page = await table.query({ ...query, cursor });
    items.push(...page.items);
    cursor = page.cursor;
  } while (cursor !== undefined && items.length < max);
  return { items: items.slice(0, max), more: cursor !== undefined || items.length > max };
}

function joined<T>(lists: readonly PartialList<Item>[], read: (item: Item) => T): PartialList<T> {
  return {
    items: lists.flatMap(({ items }) => items.map((item) => read(item))),
    more: lists.some(({ more }) => more),
  };
}

/** The partitions of the months that overlap a range of time. */
function monthsOf({ since, until }: TimeRange): string[] {
  const months = new Set<string>();
  for (let at = since; at < until; at += DAY_MS) months.add(operationKey(at, '').PK);
  return [...months.add(operationKey(until, '').PK)];
}
