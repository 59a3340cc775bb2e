import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type DataFilter, matchesFilter, NUMERIC_MAX } from '../../../../lambdas/runtime/bus/data-filter.ts';

/** Filters and payloads with the answers of aws/event-ruler at 337e8d9, `Ruler.matchesRule`, which EventBridge runs. */
const RULER: readonly (readonly [DataFilter, unknown, boolean])[] = [
  [{ a: ['x', 'y'] }, { a: 'y', b: 1 }, true],
  [{ a: ['x'] }, { b: 'x' }, false],
  [{ a: ['x'] }, 'x', false],
  [{ a: ['1'] }, { a: 1 }, false],
  [{ a: [1] }, { a: 1.0 }, true],
  [{ a: [true] }, { a: 'true' }, false],
  [{ a: [null] }, { a: null }, true],
  [{ a: [null] }, { b: 1 }, false],
  [{ a: [''] }, { a: '' }, true],
  [{ a: [1], b: [2] }, { a: 1, b: 3 }, false],
  [{ a: [1] }, { a: [3, [2, 1]] }, true],
  [{ a: [1] }, { a: [] }, false],
  [{ a: { b: [1], c: [1] } }, { a: [{ b: 1 }, { c: 1 }] }, false],
  [{ a: { b: [1], c: [1] } }, { a: [{ c: 2 }, { b: 1, c: 1 }] }, true],
  [{ a: [{ prefix: 'x' }] }, { a: 'xy' }, true],
  [{ a: [{ prefix: '' }] }, { a: 5 }, false],
  [{ a: [{ suffix: 'y' }] }, { a: 'xy' }, true],
  [{ a: [{ suffix: 'x' }] }, { a: 'xy' }, false],
  [{ a: [{ 'equals-ignore-case': 'zürich' }] }, { a: 'ZÜRICH' }, true],
  [{ a: [{ 'equals-ignore-case': 'ß' }] }, { a: 'SS' }, true],
  [{ a: [{ 'equals-ignore-case': 'SS' }] }, { a: 'ß' }, false],
  [{ a: [{ 'equals-ignore-case': 'k' }] }, { a: '\u212a' }, false],
  [{ a: [{ 'equals-ignore-case': 'a.b' }] }, { a: 'axb' }, false],
  [{ a: [{ wildcard: '*' }] }, { a: '' }, true],
  [{ a: [{ wildcard: 'x*y*z' }] }, { a: 'x--y--z' }, true],
  [{ a: [{ wildcard: 'xy*yz' }] }, { a: 'xyz' }, false],
  [{ a: [{ wildcard: 'x' }] }, { a: 'xy' }, false],
  [{ a: [{ wildcard: 'a\\*b' }] }, { a: 'axb' }, false],
  [{ a: [{ wildcard: 'a\\*b\\\\*' }] }, { a: 'a*b\\c' }, true],
  [{ a: [{ numeric: ['>', 0, '<=', 5] }] }, { a: 5 }, true],
  [{ a: [{ numeric: ['>', 0, '<=', 5] }] }, { a: 0 }, false],
  [{ a: [{ numeric: ['>=', 5] }] }, { a: '5' }, false],
  [{ a: [{ numeric: ['=', 5] }] }, { a: [4, 5] }, true],
  [{ a: [{ exists: true }] }, { a: null }, true],
  [{ a: [{ exists: true }] }, { a: {} }, false],
  [{ a: [{ exists: true }] }, { a: [] }, false],
  [{ a: [{ exists: false }] }, { a: { b: 1 } }, true],
  [{ a: [{ exists: false }] }, 5, true],
  [{ a: { b: [{ exists: false }] } }, { a: 3 }, true],
  [{ a: { b: [{ exists: false }] } }, { a: [{ b: 1 }, { c: 1 }] }, false],
  [{ a: { b: [{ exists: false }], c: [1] } }, { a: [{ b: 1 }, { c: 1 }] }, false],
  [{ a: [{ exists: false }, 'x'] }, { b: 1 }, true],
  [{ a: [{ exists: false }, 'x'] }, { a: 'x' }, true],
  [{ a: [{ exists: false }, 'x'] }, { a: 'y' }, false],
  [{ a: [{ 'anything-but': 'x' }] }, { b: 5 }, false],
  [{ a: [{ 'anything-but': 'x' }] }, { a: null }, true],
  [{ a: [{ 'anything-but': 'x' }] }, { a: 5 }, true],
  [{ a: [{ 'anything-but': 5 }] }, { a: '5' }, true],
  [{ a: [{ 'anything-but': 5 }] }, { a: 5 }, false],
  [{ a: [{ 'anything-but': ['x', 'y'] }] }, { a: ['x', 'y'] }, false],
  [{ a: [{ 'anything-but': ['x', 'y'] }] }, { a: ['x', 'z'] }, true],
  [{ a: [{ 'anything-but': { prefix: ['x', 'y'] } }] }, { a: 'yz' }, false],
  [{ a: [{ 'anything-but': { prefix: 'x' } }] }, { a: 5 }, true],
  [{ a: [{ 'anything-but': { suffix: 'x' } }] }, { a: 'xy' }, true],
  [{ a: [{ 'anything-but': { 'equals-ignore-case': 'x' } }] }, { a: 'X' }, false],
  [{ a: [{ 'anything-but': { wildcard: '*/lib/*' } }] }, { a: '/lib/a' }, false],
];

test.each(RULER)('%j on %j: %s, as EventBridge answers', (filter, data, matches) => {
  expect(matchesFilter(filter, data)).toBe(matches);
});

describe('laws of a filter', () => {
  const scalar = fc.oneof(
    fc.constantFrom('', 'x', 'xy', 'X'),
    fc.integer({ min: -3, max: 3 }),
    fc.boolean(),
    fc.constant(null),
  );
  const data = fc.dictionary(fc.constantFrom('a', 'b'), fc.oneof(scalar, fc.array(scalar, { maxLength: 3 })));
  const text = fc.constantFrom('x', 'xy', 'y');
  const excludable = fc.oneof(text, fc.integer({ min: -3, max: 3 }));

  test('of two tests of a field, one suffices', () => {
    fc.assert(
      fc.property(data, scalar, text, (payload, value, prefix) => {
        const either = matchesFilter({ a: [value, { prefix }] }, payload);
        expect(either).toBe(
          matchesFilter({ a: [value] }, payload) || matchesFilter({ a: [{ prefix }] }, payload),
        );
      }),
    );
  });

  test('of two fields, both must match', () => {
    fc.assert(
      fc.property(data, scalar, scalar, (payload, a, b) => {
        const both = matchesFilter({ a: [a], b: [b] }, payload);
        expect(both).toBe(matchesFilter({ a: [a] }, payload) && matchesFilter({ b: [b] }, payload));
      }),
    );
  });

  test('every field exists or does not', () => {
    fc.assert(
      fc.property(data, (payload) => {
        const is = (exists: boolean) => matchesFilter({ a: [{ exists }] }, payload);
        expect(is(true)).toBe(!is(false));
      }),
    );
  });

  test('a single value is either matched or anything but', () => {
    fc.assert(
      fc.property(scalar, excludable, (value, excluded) => {
        const equal = matchesFilter({ a: [excluded] }, { a: value });
        expect(matchesFilter({ a: [{ 'anything-but': excluded }] }, { a: value })).toBe(!equal);
      }),
    );
  });

  test('a prefix, a suffix and a wildcard of the whole text match it', () => {
    fc.assert(
      fc.property(fc.string(), (value) => {
        const wildcard = value.replace(/[\\*]/g, '\\$&');
        for (const operator of [{ prefix: value }, { suffix: value }, { wildcard }])
          expect(matchesFilter({ a: [operator] }, { a: value })).toBe(true);
      }),
    );
  });
});

test('a number beyond those that EventBridge compares matches no range', () => {
  expect(matchesFilter({ a: [{ numeric: ['>', 0] }] }, { a: NUMERIC_MAX })).toBe(true);
  expect(matchesFilter({ a: [{ numeric: ['>', 0] }] }, { a: NUMERIC_MAX + 1 })).toBe(false);
});

test('an operator that this version does not know, and a name of Object.prototype, match nothing', () => {
  expect(matchesFilter({ a: [{ newer: 'x' }] } as never, { a: 'x' })).toBe(false);
  expect(matchesFilter({ constructor: [{ exists: true }] }, {})).toBe(false);
});

test('a wildcard with many asterisks is decided in linear time', () => {
  const filter = { a: [{ wildcard: `${'*a'.repeat(15)}*b` }] };
  expect(matchesFilter(filter, { a: 'a'.repeat(1_000_000) })).toBe(false);
});
