import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  batchEntries,
  groupsOf,
  PUT_EVENTS_BYTES_MAX,
  PUT_EVENTS_ENTRIES_MAX,
} from '../../../../lambdas/runtime/bus/event-bus.ts';
import { memoryBus } from '../../../../testing/index.ts';

const entries = fc.array(
  fc.record({
    entry: fc.record({
      source: fc.constant('things'),
      detailType: fc.string({ minLength: 1, maxLength: 20 }),
      detail: fc.oneof(
        fc.constant('{}'),
        fc
          .integer({ min: 0, max: 390_000 })
          .map((length) => JSON.stringify({ text: 'é'.repeat(length / 2) })),
      ),
    }),
  }),
  { maxLength: 40 },
);

test('batches keep the order, lose nothing, and fit both limits of a call', async () => {
  await fc.assert(
    fc.asyncProperty(entries, async (rows) => {
      const batches = batchEntries(rows);
      expect(batches.flat()).toEqual(rows);
      const bus = memoryBus(); // refuses a call that EventBridge would refuse
      for (const batch of batches) {
        expect(batch.length).toBeGreaterThan(0);
        expect(batch.length).toBeLessThanOrEqual(PUT_EVENTS_ENTRIES_MAX);
        await expect(
          bus.put(
            batch.map(({ entry }) => entry),
            1_000,
          ),
        ).resolves.toHaveLength(batch.length);
      }
    }),
    { numRuns: 40 },
  );
});

test('an entry starts a new call only when the one before is full', () => {
  const row = (bytes: number) => ({ entry: { source: '', detailType: '', detail: 'x'.repeat(bytes) } });
  const half = PUT_EVENTS_BYTES_MAX / 2;
  expect(batchEntries(Array.from({ length: 25 }, () => row(10))).map((batch) => batch.length)).toEqual([
    10, 10, 5,
  ]);
  expect(batchEntries([row(half), row(half), row(1)]).map((batch) => batch.length)).toEqual([1, 2]);
  expect(batchEntries([])).toEqual([]);
});

test('groups keep the order, lose nothing, and read no further than they are asked to', () => {
  let read = 0;
  function* numbers() {
    while (read < 7) {
      read += 1;
      yield read;
    }
  }
  const groups = groupsOf(numbers(), 3);
  expect(groups.next().value).toEqual([1, 2, 3]);
  expect(read).toBe(3);
  expect([...groups]).toEqual([[4, 5, 6], [7]]);
  expect([...groupsOf([], 3)]).toEqual([]);
  expect([...groupsOf([1, 2], 2)]).toEqual([[1, 2]]);
});
