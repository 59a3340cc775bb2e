import { isDeepStrictEqual } from 'node:util';
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { READ_NUMBERS } from '../../lambdas/runtime/store/dynamo/attributes.ts';
import { valueProblem } from '../../lambdas/runtime/store/dynamo/item-values.ts';
import { anyNumber, anyText } from './support/arbitraries.ts';
import { runs } from './support/runs.ts';

class Instance {
  readonly a = 1;
}

/** Anything that code may put into an item: what DynamoDB stores, and what it does not. */
const anyValue = fc.letrec<{ value: unknown; leaf: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: 'small', withCrossShrink: true },
    tie('leaf'),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(anyText, tie('value'), { maxKeys: 4 }),
    fc
      .array(fc.tuple(fc.oneof(anyText, fc.nat()), tie('value')), { maxLength: 3 })
      .map((list) => new Map(list)),
    fc.array(tie('leaf'), { maxLength: 3 }).map((list) => new Set(list)),
    fc.array(anyText, { maxLength: 3 }).map((list) => new Set(list)),
    fc.array(anyNumber, { maxLength: 3 }).map((list) => new Set(list)),
  ),
  leaf: fc.oneof(
    fc.constantFrom<unknown>(null, true, undefined, Symbol('s'), () => 1),
    anyNumber,
    anyText,
    fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }),
    fc.uint8Array({ maxLength: 3 }),
    fc.date(),
    fc.constant(null).map(() => Promise.resolve(1)),
    fc.constant(null).map(() => new Instance()),
  ),
})).value;

it('an item is refused exactly when the marshaller throws at it, or stores something else', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), anyValue, { maxKeys: 4 }), (item) => {
      const problem = valueProblem(item);
      expect(problem === undefined, problem && `${problem.path} is ${problem.kind}`).toBe(isStored(item));
    }),
    runs(300),
  );
});

it('an error says where a value is and what it is, and never the value', () => {
  fc.assert(
    fc.property(
      anyValue,
      fc.array(fc.constantFrom('order', 'lines', 'at'), { maxLength: 5 }),
      (value, path) => {
        const item = path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), {
          secret: [value, new Date(0)],
        });
        const problem = valueProblem(item);
        expect(problem?.path.startsWith([...path, 'secret'].join('.'))).toBe(true);
        expect(problem?.kind).not.toContain('1970');
      },
    ),
    runs(100),
  );
});

/** Whether the SDK stores an item as it is, but for attributes that are undefined, which are not there. */
function isStored(item: Record<string, unknown>): boolean {
  try {
    const stored = unmarshall(marshall(item, { removeUndefinedValues: true }), READ_NUMBERS);
    // Not toEqual: two objects with an attribute named "constructor" are never equal to it.
    return isDeepStrictEqual(stored, asRead(item));
  } catch {
    return false;
  }
}

/** A value as it is read back when it was stored as it is: a Map as an object, a small bigint as a number. */
function asRead(value: unknown): unknown {
  if (typeof value === 'bigint') return READ_NUMBERS.wrapNumbers(String(value));
  if (Object.is(value, -0)) return 0;
  if (Array.isArray(value)) return value.map(asRead);
  if (value instanceof Set) {
    assertOne([...value].map((element) => Object(element).constructor.name));
    return new Set([...value].map(asRead));
  }
  if (value instanceof Map) {
    assertOne(['string', ...[...value.keys()].map((key) => typeof key)]);
    return entriesRead([...value]);
  }
  if (typeof value !== 'object' || value === null || (value.constructor ?? Object) !== Object) return value;
  return entriesRead(Object.entries(value));
}

function entriesRead(entries: readonly (readonly [string, unknown])[]): unknown {
  const there = entries.filter(([, element]) => element !== undefined);
  return Object.fromEntries(there.map(([name, element]) => [name, asRead(element)]));
}

/** @throws when there are several types */
function assertOne(types: readonly string[]): void {
  expect(new Set(types).size).toBe(1);
}
