import fc from 'fast-check';
import { expect, it } from 'vitest';
import { backoffMs } from '../../lambdas/runtime/store/backoff.ts';
import { runs } from './support/runs.ts';

const attempts = fc.oneof(
  fc.integer({ min: 1, max: 40 }),
  fc.integer({ min: 1 }),
  fc.constantFrom(1e9, Number.MAX_SAFE_INTEGER, Number.MAX_VALUE, Number.POSITIVE_INFINITY),
);
const bounds = fc
  .tuple(fc.integer({ min: 1, max: 60_000 }), fc.integer({ min: 0, max: 43_200_000 }))
  .map(([baseMs, more]) => ({ baseMs, capMs: baseMs + more }));
const byte = fc.integer({ min: 0, max: 255 });
const of = (value: number) => () => new Uint8Array([value]);

it('a backoff is a whole number of milliseconds from half its base to its cap, whatever the attempt', () => {
  fc.assert(
    fc.property(attempts, bounds, byte, (attempt, { baseMs, capMs }, random) => {
      const wait = backoffMs(attempt, baseMs, capMs, of(random));
      expect(Number.isSafeInteger(wait)).toBe(true);
      expect(wait).toBeGreaterThanOrEqual(baseMs / 2);
      expect(wait).toBeLessThanOrEqual(capMs);
    }),
    runs(1_000),
  );
});

it('with the same random byte a later attempt never waits less, and eventually nothing waits longer than the cap', () => {
  fc.assert(
    fc.property(attempts, attempts, bounds, byte, (one, other, { baseMs, capMs }, random) => {
      const wait = (attempt: number) => backoffMs(attempt, baseMs, capMs, of(random));
      expect(wait(Math.min(one, other))).toBeLessThanOrEqual(wait(Math.max(one, other)));
      expect(wait(Number.MAX_SAFE_INTEGER)).toBeGreaterThanOrEqual(Math.floor(capMs / 2));
    }),
    runs(1_000),
  );
});

it('the random byte spreads each wait over the upper half of its ceiling', () => {
  fc.assert(
    fc.property(attempts, bounds, (attempt, { baseMs, capMs }) => {
      const least = backoffMs(attempt, baseMs, capMs, of(0));
      const most = backoffMs(attempt, baseMs, capMs, of(255));
      expect(most).toBeLessThanOrEqual(2 * least);
      expect(most).toBeGreaterThanOrEqual(Math.floor(1.99 * least) - 1);
    }),
    runs(500),
  );
});
