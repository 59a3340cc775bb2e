import { randomUUID } from 'node:crypto';
import { inject } from 'vitest';
import { dynamoTable } from '../../lambdas/runtime/store/dynamo/dynamo-table.ts';
import { createTable, dynamoClient, isMiniStack } from '../support/aws.ts';
import { type Differences, differing } from './cases.ts';
import { describeTable } from './table-contract.ts';

/** Where MiniStack 1.5.33 does otherwise than DynamoDB is documented, or was measured, to do. */
const MINISTACK: Differences = {
  ...differing('it throws where the attribute is a number; DynamoDB finds no match', [
    'begins_with(amount, :v) with {":v":"5"} is false',
  ]),
  ...differing('it removes the second element by its index after the first is gone', [
    'REMOVE takes attributes, map entries and list elements, by the indexes as they were',
  ]),
  ...differing('it does not check the types of literal operands before it looks at the item', [
    'refused: attribute_type with no such type',
    'refused in a transaction: attribute_type with no such type',
    'refused: an order with a truth value',
    'refused in a transaction: an order with a truth value',
    'refused: BETWEEN bounds of two types',
    'refused in a transaction: BETWEEN bounds of two types',
    'refused in a transaction: ADD of a text',
    'refused in a transaction: DELETE of a number',
    'refused: a sum with a text',
    'refused in a transaction: a sum with a text',
    'refused: list_append to a number',
    'refused in a transaction: list_append to a number',
  ]),
  ...differing('it reads update expressions leniently', [
    'refused in a transaction: a reserved word in an update',
    'refused: an update that breaks off',
    'refused in a transaction: an update that breaks off',
    'refused: one section twice',
    'refused in a transaction: one section twice',
    'refused: one attribute twice in an update',
    'refused in a transaction: one attribute twice in an update',
    'refused in a transaction: an attribute and a part of it in an update',
    'refused in a transaction: SET below a number',
  ]),
  ...differing('in a transaction it does not hold keys against the schema', [
    'refused in a transaction: an update of the partition key',
    'refused in a transaction: an update of the sort key',
    'refused in a transaction: an item without a sort key',
    'refused in a transaction: a key without a sort key',
    'refused in a transaction: a key with something else in it',
  ]),
  ...differing('it lets a filter name a key', ['refused: a filter on a key']),
  ...differing('it takes a condition check without a condition', [
    'refused: a condition check without a condition',
  ]),
};

const endpoint = inject('endpoint');

describeTable(
  'the table on DynamoDB',
  async () => {
    const client = dynamoClient(endpoint);
    const tableName = `contract-${randomUUID()}`;
    const remove = await createTable(client, tableName);
    return { subject: dynamoTable({ client, tableName }), remove };
  },
  (await isMiniStack(endpoint)) ? MINISTACK : {},
);
