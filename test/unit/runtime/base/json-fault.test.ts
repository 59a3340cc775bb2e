import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { jsonFault } from '../../../../lambdas/runtime/base/json-fault.ts';

class Money {
  cents = 5;
}
class Secret {
  readonly #value = 1;
  read = () => this.#value;
}
class Sealed {
  readonly #value = 1;
  read() {
    return this.#value;
  }
}

const cycle: Record<string, unknown> = {};
cycle.lines = [{ order: cycle }];

const levels = (count: number): unknown => (count === 1 ? [] : [levels(count - 1)]);

describe('a value that JSON would lose or replace', () => {
  test.each([
    ['NaN', Number.NaN, 'NaN'],
    ['an infinite number', -Infinity, 'an infinite number'],
    ['a boxed NaN', new Number(Number.NaN), 'NaN'],
    ['a bigint', 10n, 'a bigint'],
    ['a boxed bigint', Object(10n), 'a bigint'],
    ['a function', () => 1, 'a function'],
    ['a symbol', Symbol('secret'), 'a symbol'],
    ['a Map', new Map([['secret', 1]]), 'a Map'],
    ['an empty Set', new Set(), 'a Set'],
    ['a WeakMap', new WeakMap(), 'an instance of WeakMap without own fields'],
    ['a Promise', Promise.resolve(1), 'a Promise'],
    ['an error', new TypeError('secret'), 'an error (TypeError)'],
    ['an error with fields', Object.assign(new Error('secret'), { code: 'E1' }), 'an error (Error)'],
    ['a RegExp', /secret/, 'an instance of RegExp without own fields'],
    [
      'a URLSearchParams',
      new URLSearchParams('a=secret'),
      'an instance of URLSearchParams without own fields',
    ],
    ['a Headers', new Headers({ a: 'secret' }), 'an instance of Headers without own fields'],
    ['a Blob', new Blob(['secret']), 'an instance of Blob without own fields'],
    ['a Response', new Response('secret'), 'an instance of Response without own fields'],
    ['an object with private fields only', new Sealed(), 'an instance of Sealed without own fields'],
    ['a Buffer', Buffer.from('secret'), 'an instance of Buffer'],
    ['a Uint8Array', new Uint8Array(2), 'an instance of Uint8Array'],
    ['an ArrayBuffer', new ArrayBuffer(2), 'an instance of ArrayBuffer'],
    ['an invalid Date', new Date('secret'), 'an invalid Date'],
    ['a Map of another realm', runInNewContext('new Map()'), 'a Map'],
    ['a RegExp of another realm', runInNewContext('/x/'), 'an instance of RegExp without own fields'],
    ['a value nested too deeply', levels(99), 'nested more than 100 levels deep'],
  ])('is found with its path: %s', (_what, value, kind) => {
    const path = kind.startsWith('nested') ? [] : ['lines', 0, 'it'];
    expect(jsonFault({ lines: [{ it: value }] })).toMatchObject({ path, kind });
  });

  test('is found in a method of an object, because the JSON lacks it', () => {
    expect(jsonFault(new Secret())).toMatchObject({ path: ['read'], kind: 'a function' });
  });

  test('is found where an object contains itself', () => {
    expect(jsonFault(cycle)).toMatchObject({ path: ['lines', 0, 'order'], kind: 'part of itself' });
  });

  test('is found in the result of a toJSON', () => {
    expect(jsonFault({ a: { toJSON: () => ({ fees: new Map() }) } })).toMatchObject({ path: ['a', 'fees'] });
  });

  test.each([
    [
      'toJSON',
      {
        toJSON: () => {
          throw new Error('secret');
        },
      },
    ],
    [
      'a getter',
      {
        get a() {
          throw new Error('secret');
        },
      },
    ],
  ])('is an object that throws an error in %s, without its message', (_what, value) => {
    expect(JSON.stringify(jsonFault(value))).toContain('an object that throws an error when it is read');
    expect(JSON.stringify(jsonFault(value))).not.toContain('secret');
  });

  test('is a Date where consumers would receive a string, also one in a list', () => {
    expect(jsonFault([new Date(0)], { dates: 'refused' })).toMatchObject({ path: [0], kind: 'a Date' });
  });
});

test.each([
  ['undefined', undefined, undefined],
  ['a member that is undefined', { a: undefined, b: 1 }, { b: 1 }],
  ['undefined in a list', [1, undefined], [1, null]],
  ['a hole in a list', new Array(1), [null]],
  ['-0', [-0], [0]],
  ['a member whose name is a symbol', { [Symbol('a')]: 1 }, {}],
  [
    'a getter',
    {
      get a() {
        return 5;
      },
    },
    { a: 5 },
  ],
  ['an object of a class', new Money(), { cents: 5 }],
  ['an object without a prototype', Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
  ['an empty object', {}, {}],
  ['an empty object of another realm', runInNewContext('({})'), {}],
  ['boxed values', [new String(''), new Number(1), new Boolean(false)], ['', 1, false]],
  ['a Date', { at: new Date(0) }, { at: '1970-01-01T00:00:00.000Z' }],
  ['a URL', new URL('https://shop.example/'), 'https://shop.example/'],
  ['an object with a toJSON', { toJSON: () => ({ x: 1 }) }, { x: 1 }],
  ['an error with a toJSON', Object.assign(new Error('x'), { toJSON: () => 'x' }), 'x'],
  ['an object that occurs twice', ((line) => [line, line])({ a: 1 }), [{ a: 1 }, { a: 1 }]],
  ['a name such as __proto__', JSON.parse('{"__proto__":{"a":1}}'), JSON.parse('{"__proto__":{"a":1}}')],
])('a value that JSON writes has no fault: %s', (_what, value, json) => {
  expect(jsonFault(value)).toBeUndefined();
  expect(JSON.stringify(value)).toBe(JSON.stringify(json));
});

test('100 levels are allowed, and 101 are not', () => {
  expect(jsonFault(levels(100))).toBeUndefined();
  expect(jsonFault(levels(101))).toMatchObject({ path: [], kind: 'nested more than 100 levels deep' });
});
