import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { dataChanges } from '../../../cli/changes/resend/data-changes.ts';

describe('the differences between two JSON values', () => {
  test('name each changed, added and removed member', () => {
    const before = { orderId: '42', amount: 10, items: [{ sku: 'a' }, { sku: 'b' }], note: null };
    const after = { orderId: '42', amount: '10', items: [{ sku: 'a', count: 2 }], note: {} };
    expect(dataChanges(before, after)).toEqual([
      { path: 'amount', change: 'changed', before: 10, after: '10' },
      { path: 'items[0].count', change: 'added', before: undefined, after: 2 },
      { path: 'items[1]', change: 'removed', before: { sku: 'b' }, after: undefined },
      { path: 'note', change: 'changed', before: null, after: {} },
    ]);
  });

  test('see members of the name of an inherited one', () => {
    expect(dataChanges({}, { toString: 1 })).toMatchObject([{ path: 'toString', change: 'added' }]);
  });

  test('show a list in place of an object as one change', () => {
    expect(dataChanges([], {})).toMatchObject([{ path: '', change: 'changed' }]);
  });

  test('exist exactly if the values differ', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (one, other) => {
        const parsed = (value: unknown) => JSON.parse(JSON.stringify(value));
        const [a, b] = [parsed(one), parsed(other)];
        expect(dataChanges(a, a)).toEqual([]);
        expect(dataChanges(a, b).length > 0).toBe(isDifferent(a, b));
      }),
    );
  });
});

/** Objects differ by members in any order. */
function isDifferent(a: unknown, b: unknown): boolean {
  return JSON.stringify(ordered(a)) !== JSON.stringify(ordered(b));
}

function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return { members: members.map(([name, inner]) => [name, ordered(inner)]) };
}
