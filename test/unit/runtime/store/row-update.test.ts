import { describe, expect, test } from 'vitest';
import { SCHEMA } from '../../../../lambdas/runtime/store/row-schema.ts';
import { conditionalUpdate } from '../../../../lambdas/runtime/store/row-update.ts';
import { memoryTable } from '../../../../testing/memory-table.ts';

const KEY = { PK: 'ROW', SK: 'ROW' };
const HELD = {
  condition: '#status = :held AND fence = :mine',
  values: { ':held': 'PROCESSING', ':mine': 'f' },
};

describe('a conditional update', () => {
  test('names the status that it sets, and every part in the order of DynamoDB', () => {
    const change = {
      set: { status: 'REJECTED', type: 'ThingHappened', reason: 'POISON_MESSAGE', result: undefined },
      computed: { attempts: 'attempts - :one' },
      values: { ':one': 1 },
      add: { rejectedIds: new Set(['id']) },
      remove: ['leaseUntil', 'endsBy'],
    };
    expect(conditionalUpdate(KEY, change, HELD)).toEqual({
      Key: KEY,
      UpdateExpression:
        'SET #status = :REJECTED, #type = :type, reason = :reason, attempts = attempts - :one ' +
        'ADD rejectedIds :rejectedIds REMOVE leaseUntil, endsBy',
      ConditionExpression:
        '(#status = :held AND fence = :mine) AND (attribute_not_exists(#schema) OR #schema <= :schema)',
      ExpressionAttributeNames: { '#schema': 'schema', '#status': 'status', '#type': 'type' },
      ExpressionAttributeValues: {
        ':schema': SCHEMA,
        ':REJECTED': 'REJECTED',
        ':type': 'ThingHappened',
        ':reason': 'POISON_MESSAGE',
        ':one': 1,
        ':rejectedIds': new Set(['id']),
        ':held': 'PROCESSING',
        ':mine': 'f',
      },
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    });
  });

  test('names nothing that it does not use, which DynamoDB would refuse', () => {
    const noRow = { condition: 'attribute_not_exists(PK)', values: {} };
    expect(conditionalUpdate(KEY, { set: { leaseUntil: 1 } }, noRow)).toMatchObject({
      UpdateExpression: 'SET leaseUntil = :leaseUntil',
      ExpressionAttributeNames: { '#schema': 'schema' },
    });
  });

  test('refuses a row of a newer schema, whatever else its condition allows', async () => {
    const table = memoryTable({});
    const update = conditionalUpdate(
      KEY,
      { set: { leaseUntil: 1 } },
      { condition: 'attribute_exists(PK) OR attribute_not_exists(PK)', values: {} },
    );
    for (const [schema, isWritten] of [
      [SCHEMA, true],
      [undefined, true],
      [SCHEMA + 1, false],
      ['2', false],
    ] as const) {
      await table.write({ Put: { Item: { ...KEY, ...(schema === undefined ? {} : { schema }) } } });
      await table.write({ Update: update }).catch((error: unknown) => error);
      expect([schema, table.item(KEY)?.leaseUntil]).toEqual([schema, isWritten ? 1 : undefined]);
    }
  });

  test('writes an entry of a map whose name is data', () => {
    const change = { set: {}, computed: { 'effects.#effect': ':entry' }, values: { ':entry': { run: 1 } } };
    const condition = {
      condition: 'effects.#effect.#run <= :run',
      names: { '#effect': 'a.b' },
      values: { ':run': 1 },
    };
    expect(conditionalUpdate(KEY, change, condition)).toMatchObject({
      UpdateExpression: 'SET effects.#effect = :entry',
      ExpressionAttributeNames: { '#effect': 'a.b', '#run': 'run' },
      ExpressionAttributeValues: { ':entry': { run: 1 }, ':run': 1 },
    });
  });
});
