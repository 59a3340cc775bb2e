import { expect, it } from 'vitest';
import { type DataFilter, FILTER_WORK_MAX, matchesFilter } from '../../lambdas/runtime/events/data-filter.ts';

/** The audit, `why`, `tail` and the page decide by the filter who must receive an event. */
const FILTER: DataFilter = {
  stock: { sku: ['none'], place: { country: ['none'], lost: [{ exists: false }] } },
};

/** Counts how often the filter reads a field of a payload's elements. */
function readsOf(elements: number, filter: DataFilter): number {
  let reads = 0;
  const place = {
    get country() {
      reads += 1;
      return 'CH';
    },
  };
  const stock = Array.from({ length: elements }, () => ({
    get sku() {
      reads += 1;
      return 'apple';
    },
    get place() {
      reads += 1;
      return [place, [place]];
    },
  }));
  expect(matchesFilter(filter, { stock })).toBe(false);
  return reads;
}

it.each([
  ['its elements', FILTER],
  ['lists in its elements', { stock: { place: { country: ['none'] } } }],
])('a long list takes work that is linear in %s', (_what, filter) => {
  expect(readsOf(12_000, filter)).toBe(6 * readsOf(2_000, filter));
});

it('a payload that needs more work than the bound matches no filter, so that no consumer is said to miss it', () => {
  const tests = Array.from({ length: 400 }, (_, i) => i);
  const tooLong = FILTER_WORK_MAX / tests.length;
  const list = (length: number) => ({ a: Array.from({ length }, () => -1), b: 'x' });
  const filter = { a: [...tests, { 'anything-but': 'x' }] };
  expect(matchesFilter(filter, list(tooLong / 2))).toBe(true);
  expect(matchesFilter(filter, list(tooLong))).toBe(false);
  expect(matchesFilter({ b: ['x'] }, list(tooLong))).toBe(true);
  expect(matchesFilter({ a: [{ exists: false }] }, list(tooLong))).toBe(false);
});

it('a list of the largest event is decided by an ordinary filter', () => {
  const list = Array.from({ length: 500_000 }, (_, i) => i % 10);
  expect(matchesFilter({ a: ['x', { prefix: 'y' }, 7] }, { a: list })).toBe(true);
});
