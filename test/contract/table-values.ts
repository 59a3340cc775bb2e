import { NumberValueImpl as NumberValue } from '@aws-sdk/util-dynamodb';
import { expect } from 'vitest';
import type { Item, Table } from '../../lambdas/runtime/store/table.ts';
import type { Case } from './cases.ts';
import { KEY, refuses } from './table-refusals.ts';

class Money {
  readonly cents = 4200;
}

const circle: { self?: object } = {};
circle.self = circle;

/** What no table stores: the attributes that hold it, where in them it is, and what it is. */
const UNSTORABLE: readonly (readonly [title: string, attributes: object, where: string, what: string])[] = [
  ['a Date', { order: { placedAt: new Date() } }, 'order.placedAt', 'a Date'],
  ['a promise', { order: { charge: Promise.resolve('ch_1') } }, 'order.charge', 'a Promise'],
  ['an instance of a class', { lines: [{ price: new Money() }] }, 'lines[0].price', 'an instance of Money'],
  ['a regular expression', { pattern: /secret/ }, 'pattern', 'an instance of RegExp'],
  ['a function', { order: { total: () => 4200 } }, 'order.total', 'a function'],
  ['a function in a list', { lines: [1, () => 4200] }, 'lines[1]', 'a function'],
  ['a symbol', { order: { kind: Symbol('secret') } }, 'order.kind', 'a symbol'],
  ['undefined in a list', { lines: [1, undefined] }, 'lines[1]', 'undefined'],
  ['a hole in a list', { lines: new Array(1) }, 'lines[0]', 'undefined'],
  [
    'undefined in a set',
    { tags: new Set(['secret', undefined]) },
    'tags',
    'a Set with an element of type undefined',
  ],
  ['an empty set', { tags: new Set() }, 'tags', 'an empty Set'],
  ['a set of texts and numbers', { tags: new Set(['secret', 1]) }, 'tags', 'a Set of several types'],
  ['a set of objects', { tags: new Set([{ a: 1 }]) }, 'tags', 'a Set with an element of type object'],
  ['a set with NaN', { tags: new Set([1, Number.NaN]) }, 'tags', 'a Set with NaN'],
  ['NaN', { order: { amount: Number.NaN } }, 'order.amount', 'NaN'],
  ['an infinite number', { order: { amount: -1 / 0 } }, 'order.amount', 'an infinite number'],
  ['a number too large to be exact', { amount: 2 ** 53 }, 'amount', 'a number beyond ±9007199254740991'],
  [
    'a map with a number as a key',
    { prices: new Map([[42, 1]]) },
    'prices',
    'a Map with a key of type number',
  ],
  ['a Date in a map', { order: new Map([['placedAt', new Date()]]) }, 'order.placedAt', 'a Date'],
  ['an ArrayBuffer', { blob: new ArrayBuffer(2) }, 'blob', 'an instance of ArrayBuffer'],
  ['a DataView', { blob: new DataView(new ArrayBuffer(2)) }, 'blob', 'an instance of DataView'],
  ['an array of floats', { blob: new Float64Array(2) }, 'blob', 'an instance of Float64Array'],
  ['an attribute named __proto__', { order: JSON.parse('{"__proto__":{}}') }, 'order', 'named __proto__'],
  [
    'an attribute named constructor',
    { order: { firm: { constructor: 'secret' } } },
    'order.firm',
    'named constructor',
  ],
  ['an item that contains itself', { circle }, 'circle.self.self', 'more than 32 levels'],
  ['an attribute that is 50,000 levels deep', { deep: nested(50_000) }, 'deep', 'more than 32 levels'],
  ['an attribute that is 33 levels deep', { deep: nested(33) }, 'deep[0][0][0]', 'more than 32 levels'],
  ['a name that has to be quoted', { order: { 'placed at': new Date() } }, 'order["placed at"]', 'a Date'],
];

/** What is stored, and read back as it was. */
const STORABLE: readonly (readonly [title: string, value: Item[string], read?: Item[string]])[] = [
  ['every plain value', { text: '', flag: false, nothing: null, list: [], map: {} }],
  ['bytes', [new Uint8Array([1, 2]), new Uint8Array()]],
  [
    'sets of one type',
    { texts: new Set(['a']), numbers: new Set([1, 2.5]), bytes: new Set([new Uint8Array([1])]) },
  ],
  ['numbers that a number cannot hold', [2n ** 60n, NumberValue.from('12345678901234567890.5')]],
  ['a Map with texts as keys', new Map([['a', 1]]), { a: 1 }],
  ['an object without a prototype', Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
  ['a map without what is undefined', { a: 1, b: undefined, c: [{ d: undefined }] }, { a: 1, c: [{}] }],
  ['32 levels', nested(32)],
];

/** Values that cannot be stored, and their neighbors that can. */
export const valueCases: readonly Case<Table>[] = [
  ...UNSTORABLE.map(
    ([title, attributes, where, what]): Case<Table> => [
      `not stored: ${title}`,
      async (table) => {
        const Put = { Item: { ...KEY, ...attributes } };
        const error = await refusal(table, () => table.write({ Put }));
        expect(error).toContain(`Action 1 of 1 (Put): ${where}`);
        expect(error).toContain(what);
        expect(error).not.toContain('secret');
        const other = { Delete: { Key: { PK: 'REFUSAL', SK: 'OTHER' } } };
        const second = await refusal(table, () => table.transact([other, { Put }]));
        expect(second).toContain(`Action 2 of 2 (Put): ${where}`);
      },
    ],
  ),
  ...STORABLE.map(
    ([title, value, read = value]): Case<Table> => [
      `stored: ${title}`,
      async (table) => {
        await table.write({ Put: { Item: { ...KEY, value } } });
        expect((await table.get(KEY, { consistent: true }))?.value).toEqual(read);
      },
    ],
  ),
  [
    'not stored: an item, a key, an expression value or an update of another type, each named',
    async (table) => {
      const Key = { ...KEY };
      const at: Item[string] = new Date(); // of no type: what the compiler sees is refused by it
      const Update = {
        Key,
        UpdateExpression: 'SET a = :a',
        ExpressionAttributeValues: { ':a': { at } },
      };
      const Item: Item = Object.assign(new Money(), KEY);
      const Delete = { Key: { PK: 'REFUSAL', SK: at } };
      const ConditionCheck = {
        Key,
        ConditionExpression: 'a < :a',
        ExpressionAttributeValues: { ':a': [at] },
      };
      const calls = [
        [() => table.write({ Update }), '(Update): :a.at of its ExpressionAttributeValues is a Date'],
        [() => table.write({ Put: { Item } }), '(Put): its Item is an instance of Money'],
        [() => table.write({ Delete }), '(Delete): SK of its Key is a Date'],
        [
          () => table.transact([{ ConditionCheck }]),
          '(ConditionCheck): :a[0] of its ExpressionAttributeValues is a Date',
        ],
        [
          () => table.updateEach([{ key: KEY, set: { a: { at } }, when: {} }]),
          'Update 1 of 1: a.at is a Date',
        ],
        [
          () => table.updateEach([{ key: KEY, set: { a: 1 }, when: { b: Number.NaN } }]),
          'Update 1 of 1: b of its "when" is NaN',
        ],
      ] as const;
      for (const [call, text] of calls) expect(await refusal(table, call)).toContain(text);
    },
  ],
];

/** The text with which a call is refused for what one of its values is. */
async function refusal(table: Table, call: () => Promise<unknown>): Promise<string> {
  let text = '';
  const noted = () =>
    call().catch((error: Error) => {
      text = error.message;
      throw error;
    });
  await refuses(table, noted, { code: 'BAD_ITEM' });
  return text;
}

/** A list in a list, and so on, `levels` of them. */
function nested(levels: number): Item[string] {
  let value: Item[string] = [];
  for (let level = 1; level < levels; level += 1) value = [value];
  return value;
}
