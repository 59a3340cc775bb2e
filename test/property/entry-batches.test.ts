import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  type BusEntry,
  batchEntries,
  PUT_EVENTS_BYTES_MAX,
  PUT_EVENTS_ENTRIES_MAX,
} from '../../lambdas/runtime/bus/event-bus.ts';
import { runs } from './support/runs.ts';

/** The size of an entry by the user guide ("Calculating PutEvents event entry size"), and its trace header. */
function sizeOf({ source, detailType, detail, traceHeader = '' }: BusEntry): number {
  return 14 + Buffer.byteLength(source + detailType + detail + traceHeader);
}

const total = (batch: readonly { readonly entry: BusEntry }[]) =>
  batch.reduce((sum, { entry }) => sum + sizeOf(entry), 0);

/** Small ones, ones as large as a row may be, and ones of which not even one fits a call. */
const anySize = fc.oneof(
  { weight: 5, arbitrary: fc.integer({ min: 0, max: 2_000 }) },
  { weight: 5, arbitrary: fc.integer({ min: 90_000, max: 400_000 }) },
  { weight: 1, arbitrary: fc.integer({ min: PUT_EVENTS_BYTES_MAX - 40, max: PUT_EVENTS_BYTES_MAX + 40 }) },
);
const entries = (sizes: fc.Arbitrary<number>) =>
  fc.array(
    fc.record({
      entry: fc.record({
        source: fc.string({ minLength: 1, maxLength: 8 }),
        detailType: fc.string({ unit: 'binary', minLength: 1, maxLength: 8 }),
        detail: fc
          .tuple(sizes, fc.constantFrom('x', 'é', '€'))
          .map(([bytes, unit]) => unit.repeat(bytes / Buffer.byteLength(unit))),
        traceHeader: fc.option(fc.string({ maxLength: 500 }), { nil: undefined }),
      }),
    }),
    { maxLength: 45, size: 'max' },
  );
const rows = fc.oneof(entries(fc.nat({ max: 2_000 })), entries(anySize));

it('batches keep the order and lose nothing', () => {
  fc.assert(
    fc.property(rows, (all) => {
      const flat = batchEntries(all).flat();
      expect(flat).toHaveLength(all.length);
      expect(flat.every((row, i) => row === all[i])).toBe(true);
    }),
    runs(30),
  );
});

it('every batch is within both limits of a call, unless it is one entry that alone is too large', () => {
  fc.assert(
    fc.property(rows, (all) => {
      for (const batch of batchEntries(all)) {
        expect(batch.length).toBeGreaterThanOrEqual(1);
        expect(batch.length).toBeLessThanOrEqual(PUT_EVENTS_ENTRIES_MAX);
        if (batch.length > 1) expect(total(batch)).toBeLessThan(PUT_EVENTS_BYTES_MAX);
      }
    }),
    runs(30),
  );
});

it('a call is filled to the last byte that EventBridge takes', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 900_000 }), fc.integer({ min: -3, max: 3 }), (bytes, off) => {
      const row = (size: number) => ({
        entry: { source: '', detailType: '', detail: 'x'.repeat(size - 14) },
      });
      const pair = [row(bytes + 14), row(PUT_EVENTS_BYTES_MAX - bytes - 14 + off)];
      expect(batchEntries(pair)).toHaveLength(total(pair) < PUT_EVENTS_BYTES_MAX ? 1 : 2);
    }),
    runs(50),
  );
});

it('no batch could have taken the first entry of the next one', () => {
  fc.assert(
    fc.property(rows, (all) => {
      const batches = batchEntries(all);
      for (const [i, batch] of batches.entries()) {
        const [next] = batches[i + 1] ?? [];
        if (next === undefined) continue;
        const full = batch.length === PUT_EVENTS_ENTRIES_MAX;
        expect(full || total([...batch, next]) >= PUT_EVENTS_BYTES_MAX).toBe(true);
      }
    }),
    runs(30),
  );
});
