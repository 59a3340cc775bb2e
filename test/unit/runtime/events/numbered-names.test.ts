import { expect, test } from 'vitest';
import { z } from 'zod/mini';
import { latest } from '../../../../lambdas/runtime/base/order.ts';
import { defineEvent, NUMBERED_NAMES_MAX_BYTES } from '../../../../lambdas/runtime/events/event.ts';
import {
  AGGREGATE_ID_MAX_BYTES,
  lastKey,
  lastKeyProblem,
  PARTITION_KEY_MAX_BYTES,
  sequenceOf,
} from '../../../../lambdas/runtime/store/keys.ts';
import { placeInOrder } from '../../../../lambdas/runtime/store/last-sequence.ts';
import { consumerNameProblems } from '../../../../lib/checks/names.ts';

const event = (names: { source?: string; type?: string; aggregateType?: string }, sequence = true) =>
  defineEvent({
    ...{ source: 's', type: 't', aggregateType: 'a', version: 1, schema: z.object({}), sequence },
    ...names,
  });

test('the names of a numbered event leave room in a key for every consumer, group and aggregate', () => {
  const source = 'ü'.repeat(50); // 6 bytes each when encoded
  const aggregateType = 'a'.repeat(NUMBERED_NAMES_MAX_BYTES - 300 - 1);
  const longest = event({ source, aggregateType });
  const consumer = 'c'.repeat(48);
  expect([consumerNameProblems(consumer).length, consumerNameProblems(`${consumer}c`).length]).toEqual([
    0, 1,
  ]);
  const aggregateId = 'é'.repeat(AGGREGATE_ID_MAX_BYTES / 2);
  const numbered = { ...longest, aggregateId, sequence: 1 };
  const place = placeInOrder(consumer, latest({ group: 'g'.repeat(64) }), numbered);
  expect(Buffer.byteLength(place?.key ?? '')).toBeGreaterThan(PARTITION_KEY_MAX_BYTES - 100);
  expect(sequenceOf(place?.key ?? '')).toMatchObject({ consumer, source, aggregateType, aggregateId });
});

test('names that leave less room are refused, with the bytes that they have and may have', () => {
  const aggregateType = '#'.repeat(300); // 3 bytes each when encoded
  expect(() => event({ aggregateType })).toThrow(
    'Event definition "t": source, type and aggregateType have 902 bytes together; with a sequence they may have 900, percent-encoded',
  );
  expect(() => event({ aggregateType }, false)).not.toThrow();
  expect(() => event({ aggregateType: '#'.repeat(299) })).not.toThrow();
});

test.each(['source', 'type', 'aggregateType'])('a torn %s is refused by name', (name) => {
  expect(() => event({ [name]: 'x\ud83d' }, false)).toThrow(`${name} has half of a surrogate pair`);
  expect(() => event({ [name]: 'x\ud83d\ude00' }, false)).not.toThrow();
});

test('a key takes 2,048 bytes and no more', () => {
  const of = { consumer: 'c', source: 's', group: 'g', aggregateType: 'a', aggregateId: '' };
  const room = PARTITION_KEY_MAX_BYTES - lastKey(of).PK.length;
  expect(lastKeyProblem({ ...of, aggregateId: 'x'.repeat(room) })).toBeUndefined();
  expect(lastKeyProblem({ ...of, aggregateId: 'x'.repeat(room + 1) })).toContain('needs a key of 2049 bytes');
});
