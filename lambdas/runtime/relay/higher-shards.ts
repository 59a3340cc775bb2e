import type { DynamoDBRecord } from 'aws-lambda';
import { errorCode, errorMessage } from '../base/errors.ts';
import { MINUTE_MS } from '../base/units.ts';
import { unsettledPointer } from '../store/dynamo/unsettled-minutes.ts';
import { minuteOf } from '../store/event-id.ts';
import { outboxPartOf } from '../store/outbox-partition.ts';
import type { RelayContext } from './relay-context.ts';
import { raiseShards } from './sweep-state.ts';

/**
 * The age from which a minute of a higher shard gets a pointer, milliseconds: the sweep may have passed its ages while it read fewer
 * shards. A younger minute has at least two ages left, 256 and 1024 minutes.
 */
const PASSED_MS = 64 * MINUTE_MS;

/** Brings the shards of a batch within the sweep's reach. @returns the records that it could not bring there */
export type HigherShards = (records: readonly DynamoDBRecord[]) => Promise<readonly DynamoDBRecord[]>;

/**
 * Creates the part of the stream relay that notices events in shards above the configured ones: their producer has a higher
 * `MAILROOM_SHARDS`, and the sweep would never read them.
 *
 *     commit in shard 63          state: shards = 64          publish
 *       |---- record, again ----------->|------------------------|-- not published: the sweep reads shard 63 --▶
 *          until the range is stored
 *
 * Invariant: the relay lets go of a record only after the stored number of shards includes its shard, and after its minute has a
 * pointer if the sweep's ages may have passed it. So the relay may die at any point: a record that it did not let go of is
 * delivered again. The number is only ever raised, so it is remembered until the function ends.
 */
export function createHigherShards({
  config,
  table,
  clock,
  random,
  telemetry,
}: Pick<RelayContext, 'config' | 'table' | 'clock' | 'random' | 'telemetry'>): HigherShards {
  let stored = config.shards;

  async function cover(shard: number, minutes: ReadonlySet<number>): Promise<void> {
    if (shard >= stored) {
      stored = await raiseShards(table, shard + 1);
      const message =
        'A producer has more shards than the relay: the sweep reads them from now on. Give both the same MAILROOM_SHARDS';
      telemetry.log.warn(message, { shard, shards: config.shards, swept: stored });
    }
    for (const minute of minutes) {
      if (minute + PASSED_MS >= clock.now()) continue;
      const pointer = unsettledPointer(shard, minuteOf(minute), random);
      await table.write({ Put: { Item: { ...pointer } } });
    }
  }

  return async (records) => {
    const higher = new Map<number, { readonly records: DynamoDBRecord[]; readonly minutes: Set<number> }>();
    for (const record of records) {
      if (record?.eventName !== 'INSERT') continue;
      const part = outboxPartOf(record.dynamodb?.Keys?.PK?.S);
      if (part === undefined || part.shard < config.shards) continue;
      const found = higher.get(part.shard) ?? { records: [], minutes: new Set() };
      higher.set(part.shard, found);
      found.records.push(record);
      found.minutes.add(part.startsAt);
    }
    const left: DynamoDBRecord[] = [];
    // The highest first: one write covers the others.
    for (const [shard, { records, minutes }] of [...higher].sort(([a], [b]) => b - a)) {
      try {
        await cover(shard, minutes);
      } catch (error) {
        left.push(...records);
        telemetry.log.error('The sweep does not read a shard yet: the records are returned to the mapping', {
          shard,
          code: errorCode(error),
          error: errorMessage(error),
        });
      }
    }
    return left;
  };
}
