import { expect } from 'vitest';
import type { Item, Table, TransactAction, Write } from '../../lambdas/runtime/store/table.ts';
import type { Case } from './cases.ts';

export const KEY = { PK: 'REFUSAL', SK: 'ITEM' };
/** What another action of the same transaction puts. */
const OTHER = { PK: 'REFUSAL', SK: 'OTHER' };
const BEFORE: Item = { ...KEY, word: 'x', amount: 1, entries: [1], tree: { a: 1 }, tags: new Set(['a']) };

function update(UpdateExpression: string, values?: Item, names?: Record<string, string>): Write {
  return {
    Update: {
      Key: KEY,
      UpdateExpression,
      ExpressionAttributeValues: values,
      ExpressionAttributeNames: names,
    },
  };
}

function condition(ConditionExpression: string, values?: Item, names?: Record<string, string>): Write {
  return {
    Put: {
      Item: BEFORE,
      ConditionExpression,
      ExpressionAttributeValues: values,
      ExpressionAttributeNames: names,
    },
  };
}

/** Writes that are invalid in themselves, whatever the item. */
const INVALID: readonly (readonly [title: string, write: Write])[] = [
  ['a value that no expression uses', condition('amount = :a', { ':a': 1, ':b': 2 })],
  ['a name that no expression uses', condition('amount = :a', { ':a': 1 }, { '#n': 'amount' })],
  ['a value that is not defined', condition('amount = :b', { ':a': 1 })],
  ['a name that is not defined', condition('#m = :a', { ':a': 1 }, { '#n': 'amount' })],
  ['a value that is undefined', condition('amount = :a', { ':a': undefined, ':b': 1 })],
  ['a reserved word in a condition', condition('status = :a', { ':a': 1 })],
  ['a reserved word in an update', update('SET name = :a', { ':a': 1 })],
  ['an empty condition', condition('')],
  ['an empty update', update('')],
  ['a condition that breaks off', condition('amount =', { ':a': 1 })],
  ['a condition with a word too many', condition('amount = :a amount', { ':a': 1 })],
  ['a condition with an unknown function', condition('exists(amount)')],
  ['a condition with a parenthesis left open', condition('(amount = :a', { ':a': 1 })],
  ['redundant parentheses', condition('((amount = :a))', { ':a': 1 })],
  ['attribute_type with no such type', condition('attribute_type(amount, :a)', { ':a': 'STRING' })],
  ['begins_with a number', condition('begins_with(word, :a)', { ':a': 1 })],
  ['an order with a truth value', condition('amount < :a', { ':a': true })],
  ['BETWEEN bounds the wrong way round', condition('amount BETWEEN :a AND :b', { ':a': 2, ':b': 1 })],
  ['BETWEEN bounds of two types', condition('amount BETWEEN :a AND :b', { ':a': 1, ':b': 'x' })],
  ['an update that breaks off', update('SET amount')],
  ['one section twice', update('SET amount = :a SET word = :a', { ':a': 1 })],
  ['one attribute twice in an update', update('SET amount = :a, amount = :a', { ':a': 1 })],
  [
    'an attribute and a part of it in an update',
    update('SET #m = :a, #m.a = :a', { ':a': 1 }, { '#m': 'tree' }),
  ],
  ['ADD of a text', update('ADD fresh :a', { ':a': 'x' })],
  ['DELETE of a number', update('DELETE tags :a', { ':a': 1 })],
  ['an empty partition key', { Put: { Item: { PK: '', SK: 'x' } } }],
  ['an empty sort key', { Update: { Key: { PK: 'x', SK: '' }, UpdateExpression: 'REMOVE a' } }],
  ['a partition key of 2,049 bytes', { Put: { Item: { PK: 'x'.repeat(2_049), SK: 'x' } } }],
  ['a sort key of 1,025 bytes', { Put: { Item: { PK: 'x', SK: 'x'.repeat(1_025) } } }],
  ['an item above 400 KB', { Put: { Item: { ...KEY, filler: 'x'.repeat(400 * 1024) } } }],
];

/** Writes that do not fit the table's schema, or the item as it is. */
const UNFITTING: readonly (readonly [title: string, write: Write])[] = [
  ['an update of the partition key', update('SET PK = :a', { ':a': 'x' })],
  ['an update of the sort key', update('REMOVE SK')],
  ['an item without a sort key', { Put: { Item: { PK: 'x' } } }],
  ['a key that is a number', { Put: { Item: { PK: 'x', SK: 1 } } }],
  ['a key without a sort key', { Delete: { Key: { PK: 'x' } } }],
  ['a key with something else in it', { Delete: { Key: { ...KEY, amount: 1 } } }],
  ['a sum with an attribute that is not there', update('SET amount = absent + :a', { ':a': 1 })],
  ['a sum with a text', update('SET amount = word + :a', { ':a': 1 })],
  ['list_append to a number', update('SET amount = list_append(amount, :a)', { ':a': [1] })],
  ['ADD of a number to a text', update('ADD word :a', { ':a': 1 })],
  ['ADD of a set to a set of another type', update('ADD tags :a', { ':a': new Set([1]) })],
  ['DELETE from an attribute that is not a set', update('DELETE word :a', { ':a': new Set(['x']) })],
  ['SET below an attribute that is not there', update('SET absent.a = :a', { ':a': 1 })],
  ['SET below a number', update('SET amount.a = :a', { ':a': 1 })],
  ['an update that makes the item too large', update('SET filler = :a', { ':a': 'x'.repeat(400 * 1024) })],
];

/** Everything that is refused, alone and inside a transaction; the item stays as it was. */
export const refusalCases: readonly Case<Table>[] = [
  ...INVALID.flatMap(([title, write]): Case<Table>[] => [
    [
      `refused: ${title}`,
      (table) => refuses(table, () => table.write(write), { name: 'ValidationException' }),
    ],
    [
      `refused in a transaction: ${title}`,
      async (table) => {
        const other: TransactAction = { Put: { Item: OTHER } };
        await refuses(table, () => table.transact([other, write]), { name: 'ValidationException' });
      },
    ],
  ]),
  ...UNFITTING.flatMap(([title, write]): Case<Table>[] => [
    [
      `refused: ${title}`,
      (table) => refuses(table, () => table.write(write), { name: 'ValidationException' }),
    ],
    [
      `refused in a transaction: ${title}`,
      async (table) => {
        const other: TransactAction = { Put: { Item: OTHER } };
        await refuses(table, () => table.transact([other, write]), {
          code: 'TRANSACTION_CANCELLED',
          reasons: [{ code: 'None' }, { code: 'ValidationError', message: expect.any(String) }],
        });
      },
    ],
  ]),
  [
    'refused: a table that is not there',
    async (table) => {
      const Put = { TableName: 'mailroom-no-such-table', Item: KEY };
      await refuses(table, () => table.write({ Put }), { name: 'ResourceNotFoundException' });
      await refuses(table, () => table.transact([{ Put }]), { name: 'ResourceNotFoundException' });
    },
  ],
  [
    'refused: a write with no member or with two',
    async (table) => {
      const Put = { Item: BEFORE };
      await refuses(table, () => table.write({}), { code: 'BAD_WRITE' });
      await refuses(table, () => table.write({ Put, Delete: { Key: KEY } }), { code: 'BAD_WRITE' });
      await refuses(table, () => table.transact([{ Put, Delete: { Key: KEY } }]), { code: 'BAD_WRITE' });
    },
  ],
];

/** Expects that a call is refused with this error, and that {@link BEFORE} stays as it was. */
export async function refuses(table: Table, call: () => Promise<unknown>, error: object): Promise<void> {
  await table.write({ Put: { Item: BEFORE } });
  await table.write({ Delete: { Key: OTHER } });
  await expect(call()).rejects.toMatchObject(error);
  expect(await table.get(KEY, { consistent: true })).toEqual(BEFORE);
  expect(await table.get(OTHER, { consistent: true })).toBeUndefined();
}
