import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { matchesFilter, NUMERIC_MAX } from '../../../../lambdas/runtime/events/data-filter.ts';
import { FILTER_CASES } from '../../../contract/filter-cases.ts';

test.each(FILTER_CASES)('%j on %j: %s, as EventBridge answers', (filter, data, matches) => {
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

  test('a field matches if one of its two tests does', () => {
    fc.assert(
      fc.property(data, scalar, text, (payload, value, prefix) => {
        const either = matchesFilter({ a: [value, { prefix }] }, payload);
        expect(either).toBe(
          matchesFilter({ a: [value] }, payload) || matchesFilter({ a: [{ prefix }] }, payload),
        );
      }),
    );
  });

  test('an event matches if both of its two fields do', () => {
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
