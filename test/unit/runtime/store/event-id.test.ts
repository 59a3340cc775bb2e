import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  eventIdShard,
  eventIdTime,
  isEventId,
  mintEventId,
  outboxKeyOf,
} from '../../../../lambdas/runtime/store/event-id.ts';

const times = fc.integer({ min: 0, max: Date.UTC(9999, 0) });
const shardCounts = fc.integer({ min: 1, max: 256 });

test('an event id is a UUIDv7 that contains its time and its shard', () => {
  fc.assert(
    fc.property(times, shardCounts, fc.uint8Array({ minLength: 16, maxLength: 16 }), (now, shards, bytes) => {
      const eventId = mintEventId(now, shards, () => bytes);
      expect(isEventId(eventId)).toBe(true);
      expect(eventIdTime(eventId)).toBe(now);
      expect(eventIdShard(eventId)).toBeLessThan(shards);
    }),
  );
});

test('the row of an event is found from its id alone', () => {
  const eventId = mintEventId(Date.UTC(2026, 10, 21, 1, 9, 30), 8, () => new Uint8Array(16).fill(0x0b));
  expect(outboxKeyOf(eventId)).toEqual({ PK: 'OUTBOX#2026-11-21T01:09#03', SK: `EVENT#${eventId}` });
});

test('ids spread over all shards', () => {
  const shards = new Set(Array.from({ length: 500 }, () => eventIdShard(mintEventId(Date.now(), 8))));
  expect([...shards].sort()).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
});

test.each(['', 'x', '0192b3f0-5e0c-4a41-9c37-3f5d2b8e1103', '0192B3F0-5E0C-7A41-9C37-3F5D2B8E1103'])(
  '%j is not an event id',
  (text) => {
    expect(isEventId(text)).toBe(false);
    expect(() => eventIdTime(text)).toThrow('not an event id');
  },
);
