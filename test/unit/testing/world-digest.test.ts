import { describe, expect, test } from 'vitest';
import { worldDigest } from '../../../testing/explorer/world-digest.ts';

class Bank {
  readonly charges: unknown[];
  readonly #secret: string;

  constructor(charges: unknown[] = [], secret = '') {
    this.charges = charges;
    this.#secret = secret;
  }

  secret(): string {
    return this.#secret;
  }
}

class Counter {
  readonly #n: number;

  constructor(n: number) {
    this.#n = n;
  }

  toJSON(): number {
    return this.#n;
  }
}

const cyclic = (n: number) => {
  const node: Record<string, unknown> = { n };
  node.self = node;
  return node;
};

const one = { n: 1 };

describe('the digest of a world', () => {
  test.each<[string, () => unknown]>([
    ['nothing', () => undefined],
    ['a plain object', () => ({ a: 1, b: [true, null] })],
    ['a class instance', () => new Bank([{ cents: 1 }])],
    ['a Map of Sets', () => new Map([['ada', new Set(['k1'])]])],
    ['a date', () => new Date(0)],
    ['an error', () => new Error('closed')],
    ['a cycle', () => cyclic(1)],
  ])('of %s is the same each time', (_what, make) => {
    expect(worldDigest(make())).toBe(worldDigest(make()));
  });

  test.each<[string, unknown, unknown]>([
    ['a field', { n: 1 }, { n: 2 }],
    ['the type of a field', { n: 1 }, { n: '1' }],
    ['a large number', { n: 1n }, { n: 2n }],
    ['a field without a value', { n: undefined }, {}],
    ['a field deep in an instance', new Bank([{ cents: 1 }]), new Bank([{ cents: 2 }])],
    ['an entry of a Map', new Map([['ada', 1]]), new Map([['ada', 2]])],
    ['a key of a Map', new Map([['ada', 1]]), new Map([['bob', 1]])],
    ['a member of a Set', new Set(['k1']), new Set(['k2'])],
    ['the order of a Set', new Set(['k1', 'k2']), new Set(['k2', 'k1'])],
    ['a Map in a Set', new Set([new Map([[1, 1]])]), new Set([new Map([[1, 2]])])],
    ['a date', new Date(0), new Date(1)],
    ['an error', new Error('closed'), new Error('open')],
    ['bytes', new Uint8Array([1]), new Uint8Array([2])],
    ['a buffer of bytes', new Uint8Array([1]).buffer, new Uint8Array([2]).buffer],
    ['what toJSON returns', new Counter(1), new Counter(2)],
    ['a cycle', cyclic(1), cyclic(2)],
    ['one object twice, or two that are equal', [one, one], [one, { ...one }]],
    ['the class', new Bank(), { charges: [] }],
  ])('tells %s apart', (_what, first, second) => {
    expect(worldDigest(first)).not.toBe(worldDigest(second));
  });

  test('the digest ignores private fields and functions', () => {
    expect(worldDigest(new Bank([], 'a'))).toBe(worldDigest(new Bank([], 'b')));
    expect(worldDigest({ call: () => 1 })).toBe(worldDigest({ call: () => 2 }));
  });
});
