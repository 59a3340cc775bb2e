import fc from 'fast-check';
import { expect, it } from 'vitest';
import { MINUTE_MS } from '../../lambdas/runtime/base/units.ts';
import { minutesToSweep, SWEEP_AGES_MINUTES } from '../../lambdas/runtime/relay/minutes-to-sweep.ts';
import {
  eventIdShard,
  eventIdTime,
  isEventId,
  mintEventId,
  outboxKeyOf,
} from '../../lambdas/runtime/store/event-id.ts';
import { outboxPartition } from '../../lambdas/runtime/store/outbox-partition.ts';
import { anyJson, anyText } from './support/arbitraries.ts';
import { runs } from './support/runs.ts';

/** Up to the last hours that are written with four digits for their year. */
const times = fc.integer({ min: 0, max: Date.UTC(9999, 11, 31, 23) });
/** Half an hour, or less. */
const near = fc.oneof(fc.integer({ min: 0, max: 120_000 }), fc.integer({ min: 0, max: 1_800_000 }));
const shardCounts = fc.integer({ min: 1, max: 256 });
const bytes = fc.uint8Array({ minLength: 16, maxLength: 16 });

it('an event id tells its time and its shard, whatever the random bytes, and leaves them alone', () => {
  fc.assert(
    fc.property(times, shardCounts, bytes, (now, shards, random) => {
      const before = Uint8Array.from(random);
      const eventId = mintEventId(now, shards, () => random);
      expect(isEventId(eventId)).toBe(true);
      expect(eventIdTime(eventId)).toBe(now);
      expect(eventIdShard(eventId)).toBe((before[15] ?? 0) % shards);
      expect(random).toEqual(before);
    }),
    runs(500),
  );
});

it('ids of one time and shard differ wherever their random bits differ', () => {
  // Bytes 6 and 8 carry version and variant in their upper bits; byte 15 is the shard.
  const bits = fc
    .tuple(fc.integer({ min: 6, max: 14 }), fc.nat({ max: 7 }))
    .filter(([index, bit]) => (index !== 6 || bit < 4) && (index !== 8 || bit < 6));
  fc.assert(
    fc.property(times, shardCounts, bytes, bits, (now, shards, random, [index, bit]) => {
      const other = Uint8Array.from(random);
      other[index] = (other[index] ?? 0) ^ (1 << bit);
      const mint = (from: Uint8Array) => mintEventId(now, shards, () => from);
      expect(mint(other)).not.toBe(mint(random));
    }),
    runs(500),
  );
});

it('the row of an event lies in a partition that the sweep reads at each of its ages', () => {
  fc.assert(
    fc.property(times, shardCounts, bytes, (now, shards, random) => {
      const eventId = mintEventId(now, shards, () => random);
      const end = Math.floor(now / MINUTE_MS) * MINUTE_MS + MINUTE_MS;
      for (const age of SWEEP_AGES_MINUTES) {
        const due = end + age * MINUTE_MS;
        const partitions = minutesToSweep(due - 1, due).flatMap((minute) =>
          Array.from({ length: shards }, (_, shard) => outboxPartition(minute, shard)),
        );
        expect(partitions).toContain(outboxKeyOf(eventId).PK);
      }
    }),
    runs(60),
  );
});

it('keys of the outbox are told apart, and sorted, by their time', () => {
  fc.assert(
    fc.property(times, near, shardCounts, bytes, (one, away, shards, random) => {
      const other = one + away;
      const key = (now: number) => outboxKeyOf(mintEventId(now, shards, () => random));
      const minute = (time: number) => Math.floor(time / MINUTE_MS);
      expect(key(one).PK === key(other).PK).toBe(minute(one) === minute(other));
      expect(key(one).SK < key(other).SK).toBe(one < other);
    }),
    runs(300),
  );
});

it('a text that is not an event id is never accepted as one, and reading its time throws', () => {
  const almost = fc
    .tuple(times, bytes, fc.nat({ max: 35 }), fc.string({ minLength: 0, maxLength: 2 }))
    .map(([now, random, at, text]) => {
      const eventId = mintEventId(now, 8, () => random);
      return eventId.slice(0, at) + text + eventId.slice(at + 1);
    });
  const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
  fc.assert(
    fc.property(fc.oneof(almost, anyText, anyJson), (value) => {
      expect(isEventId(value)).toBe(typeof value === 'string' && uuid.test(value));
      if (typeof value !== 'string' || isEventId(value)) return;
      expect(() => eventIdTime(value)).toThrow(expect.objectContaining({ code: 'BAD_EVENT_ID' }));
      expect(() => outboxKeyOf(value)).toThrow(expect.objectContaining({ code: 'BAD_EVENT_ID' }));
    }),
    runs(500),
  );
});
