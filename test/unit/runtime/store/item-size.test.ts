import { describe, expect, it } from 'vitest';
import { itemBytes, valueBytes } from '../../../../lambdas/runtime/store/item-size.ts';

describe('the size of an item', () => {
  it('counts names and values in UTF-8', () => {
    expect(itemBytes({ PK: 'ORDER#1', total: 1999 })).toBe(2 + 7 + 5 + 3);
    expect(itemBytes({ żółw: '🐢' })).toBe(7 + 4);
    expect(itemBytes({})).toBe(0);
  });

  it('counts nothing for values that are not stored', () => {
    expect(itemBytes({ a: undefined })).toBe(0);
    expect(valueBytes({ a: undefined })).toBe(3);
  });

  it.each([
    ['', 0],
    ['abc', 3],
    [true, 1],
    [null, 1],
    [new Uint8Array(10), 10],
    [new Set(['ab', 'c']), 3],
    [[], 3],
    [['ab', 'c'], 3 + 2 + 3],
    [{}, 3],
    [{ name: 'ab' }, 3 + 1 + 4 + 2],
    [{ a: [{ b: 1 }] }, 3 + 1 + 1 + (3 + 1 + (3 + 1 + 1 + 2))],
    [new Map([['name', 'ab']]), 3 + 1 + 4 + 2],
  ])('counts %o as %i bytes', (value, bytes) => {
    expect(valueBytes(value)).toBe(bytes);
  });

  it.each([
    [0, 1],
    [-0, 1],
    [1, 2],
    [42, 2],
    [-42, 3],
    [100, 2],
    [120, 3],
    [123, 3],
    [1.5, 3],
    [0.1, 2],
    [1_800_000_000_000, 3],
    [1_763_683_200_123, 8],
    [1e-7, 2],
    [12n, 2],
  ])(
    'counts the number %s as %i bytes: a pair of digits each, one more, and one for the sign',
    (value, bytes) => {
      expect(valueBytes(value)).toBe(bytes);
    },
  );
});
