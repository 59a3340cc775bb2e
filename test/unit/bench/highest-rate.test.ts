import fc from 'fast-check';
import { expect, it } from 'vitest';
import { highestCarried, lowestTooHigh, nextRate, type TriedRate } from '../../../bench/latency/rate-run.ts';

/** Searches as the benchmark does, on a system that carries so many a second and no more. */
function search(capacity: number, first: readonly number[] = []): TriedRate[] {
  const tried = first.map((asked) => ({ asked, keptUp: asked <= capacity }));
  for (let rate = nextRate(tried); rate !== undefined; rate = nextRate(tried)) {
    if (tried.length > 30) throw new Error(`The search does not end: ${JSON.stringify(tried)}`);
    tried.push({ asked: rate, keptUp: rate <= capacity });
  }
  return tried;
}

it('finds the highest rate that a system carries, to a fifth, and the lowest that was too high', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 100_000 }), fc.subarray([1, 50]), (capacity, first) => {
      const tried = search(capacity, first);
      const most = highestCarried(tried)?.asked ?? 0;
      const tooHigh = lowestTooHigh(tried) ?? 0;
      expect(most).toBeLessThanOrEqual(capacity);
      expect(tooHigh).toBeGreaterThan(capacity);
      expect(tooHigh).toBeLessThanOrEqual(Math.max(most * 1.2, most + 1));
    }),
  );
});

it('stops at one if that was too much', () => {
  expect(nextRate([{ asked: 1, keptUp: false }])).toBeUndefined();
});

it('goes on from a rate that was carried although a lower one was not', () => {
  const tried = [
    { asked: 1, keptUp: false },
    { asked: 50, keptUp: true },
  ];
  expect(nextRate(tried)).toBe(100);
  expect(lowestTooHigh(tried)).toBeUndefined();
});
