import { expect } from 'vitest';
import type { Item, Table } from '../../lambdas/runtime/store/table.ts';
import type { Case } from './cases.ts';

/** The item that the conditions are asked of. */
const ITEM: Item = {
  word: 'hello',
  amount: 5,
  zero: 0,
  yes: true,
  nothing: null,
  bytes: new Uint8Array([1, 2, 3]),
  tags: new Set(['red', 'green']),
  primes: new Set([2, 3, 5]),
  parts: [{ sku: 'a' }, { sku: 'b' }, 'loose'],
  home: { city: 'Oslo', grid: [[1, 2], [3]] },
  // A reserved word, and one with a dot in it.
  status: 'PENDING',
  'a.b': 'dotted',
  twin: 'hello',
};

interface ConditionRow {
  readonly condition: string;
  readonly holds: boolean;
  readonly values?: Item;
  readonly names?: Record<string, string>;
}

function row(holds: boolean, condition: string, values?: Item, names?: Record<string, string>): ConditionRow {
  return { condition, holds, ...(values && { values }), ...(names && { names }) };
}

const ROWS: readonly ConditionRow[] = [
  // Comparators, by type.
  row(true, 'word = :v', { ':v': 'hello' }),
  row(false, 'word = :v', { ':v': 'Hello' }),
  row(true, 'word <> :v', { ':v': 'bye' }),
  row(false, 'word <> :v', { ':v': 'hello' }),
  row(true, 'amount < :v', { ':v': 6 }),
  row(false, 'amount < :v', { ':v': 5 }),
  row(true, 'amount <= :v', { ':v': 5 }),
  row(true, 'amount > :v', { ':v': 4.5 }),
  row(true, 'amount >= :v', { ':v': 5 }),
  row(false, 'amount >= :v', { ':v': 10 }),
  row(true, 'word < :v', { ':v': 'hello!' }),
  row(true, 'word > :v', { ':v': 'Z' }),
  row(true, 'bytes = :v', { ':v': new Uint8Array([1, 2, 3]) }),
  row(true, 'yes = :v', { ':v': true }),
  row(true, 'nothing = :v', { ':v': null }),
  row(true, 'tags = :v', { ':v': new Set(['green', 'red']) }),
  row(false, 'tags = :v', { ':v': new Set(['green']) }),
  row(true, 'primes = :v', { ':v': new Set([5, 3, 2]) }),
  row(true, 'home = :v', { ':v': { grid: [[1, 2], [3]], city: 'Oslo' } }),
  row(false, 'parts = :v', { ':v': ['loose', { sku: 'a' }, { sku: 'b' }] }),
  row(true, 'word = twin'),
  // Between types there is no order, and no equality.
  row(false, 'amount = :v', { ':v': '5' }),
  row(true, 'amount <> :v', { ':v': '5' }),
  row(false, 'amount < :v', { ':v': '9' }),
  row(false, 'word > :v', { ':v': 1 }),
  // Attributes that are not there.
  row(false, 'absent = :v', { ':v': 1 }),
  row(true, 'absent <> :v', { ':v': 1 }),
  row(false, 'absent < :v', { ':v': 1 }),
  row(false, 'absent >= :v', { ':v': 1 }),
  row(true, 'NOT absent = :v', { ':v': 1 }),
  // Functions.
  row(true, 'attribute_exists(nothing)'),
  row(false, 'attribute_exists(absent)'),
  row(true, 'attribute_not_exists(home.street)'),
  row(false, 'attribute_not_exists(home.city)'),
  row(false, 'attribute_exists(toString)'),
  row(true, 'attribute_type(tags, :v)', { ':v': 'SS' }),
  row(false, 'attribute_type(tags, :v)', { ':v': 'S' }),
  row(true, 'attribute_type(nothing, :v)', { ':v': 'NULL' }),
  row(false, 'attribute_type(absent, :v)', { ':v': 'NULL' }),
  row(true, 'begins_with(word, :v)', { ':v': 'hel' }),
  row(false, 'begins_with(word, :v)', { ':v': 'ell' }),
  row(false, 'begins_with(amount, :v)', { ':v': '5' }),
  row(true, 'contains(word, :v)', { ':v': 'ell' }),
  row(false, 'contains(word, :v)', { ':v': 'x' }),
  row(true, 'contains(tags, :v)', { ':v': 'red' }),
  row(false, 'contains(tags, :v)', { ':v': 're' }),
  row(true, 'contains(primes, :v)', { ':v': 3 }),
  row(true, 'contains(parts, :v)', { ':v': 'loose' }),
  row(true, 'contains(parts, :v)', { ':v': { sku: 'b' } }),
  row(false, 'contains(amount, :v)', { ':v': 5 }),
  row(true, 'size(word) = :v', { ':v': 5 }),
  row(true, 'size(tags) > :v', { ':v': 1 }),
  row(true, 'size(parts) = :v', { ':v': 3 }),
  row(true, 'size(home) = :v', { ':v': 2 }),
  row(true, 'size(bytes) <= :v', { ':v': 3 }),
  row(false, 'size(amount) > :v', { ':v': 0 }),
  row(false, 'size(absent) >= :v', { ':v': 0 }),
  // Ranges and lists.
  row(true, 'amount BETWEEN :a AND :b', { ':a': 5, ':b': 7 }),
  row(false, 'amount BETWEEN :a AND :b', { ':a': 6, ':b': 7 }),
  row(false, 'word BETWEEN :a AND :b', { ':a': 1, ':b': 7 }),
  row(true, ':v BETWEEN zero AND amount', { ':v': 3 }),
  row(true, 'word IN (:a, :b)', { ':a': 'bye', ':b': 'hello' }),
  row(false, 'word IN (:a)', { ':a': 'bye' }),
  row(false, 'absent IN (:a)', { ':a': 'bye' }),
  // Logic: NOT binds tighter than AND, AND tighter than OR.
  row(true, 'yes = :t OR yes = :f AND zero = :t', { ':t': true, ':f': false }),
  row(false, '(yes = :t OR yes = :f) AND zero = :t', { ':t': true, ':f': false }),
  row(true, 'NOT yes = :f AND yes = :t', { ':t': true, ':f': false }),
  row(false, 'NOT (yes = :f OR yes = :t)', { ':t': true, ':f': false }),
  row(true, 'not absent = :t and (zero = :t or attribute_exists(amount))', { ':t': true }),
  row(true, 'NOT NOT yes = :t', { ':t': true }),
  // Paths and placeholders.
  row(true, 'parts[1].sku = :v', { ':v': 'b' }),
  row(false, 'parts[9].sku = :v', { ':v': 'b' }),
  row(true, 'home.grid[0][1] = :v', { ':v': 2 }),
  row(true, '#home.#city = :v', { ':v': 'Oslo' }, { '#home': 'home', '#city': 'city' }),
  row(true, '#s = :v', { ':v': 'PENDING' }, { '#s': 'status' }),
  row(true, '#dotted = :v', { ':v': 'dotted' }, { '#dotted': 'a.b' }),
  row(false, 'word.deeper = :v', { ':v': 'x' }),
  row(true, 'attribute_exists(PK) AND attribute_not_exists(publishedAt)'),
];

/** Every form of a condition, each asked of the same item. */
export const conditionCases: readonly Case<Table>[] = ROWS.map(
  ({ condition, holds, values, names }, index) => {
    const literals = values ? ` with ${describeValues(values)}` : '';
    return [
      `${condition}${literals} is ${holds}`,
      async (table) => {
        const Key = { PK: `CONDITION#${index}`, SK: 'ITEM' };
        await table.write({ Put: { Item: { ...Key, ...ITEM } } });
        const asked = table.transact([
          {
            ConditionCheck: {
              Key,
              ConditionExpression: condition,
              ExpressionAttributeNames: names,
              ExpressionAttributeValues: values,
            },
          },
        ]);
        if (holds) await asked;
        else await expect(asked).rejects.toMatchObject({ code: 'TRANSACTION_CANCELLED' });
      },
    ];
  },
);

function describeValues(values: Item): string {
  return JSON.stringify(values, (_, value: unknown) => {
    if (value instanceof Set) return { set: [...value] };
    return value instanceof Uint8Array ? { bytes: [...value] } : value;
  });
}
