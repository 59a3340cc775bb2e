import { describe, expect, test } from 'vitest';
import { conditionalUpdate, conditionalWrite } from '../../../../lambdas/runtime/store/row-update.ts';
import { memoryTable } from '../../../../testing/index.ts';

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
      ConditionExpression: '#status = :held AND fence = :mine',
      ExpressionAttributeNames: { '#status': 'status', '#type': 'type' },
      ExpressionAttributeValues: {
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
    });
    expect(conditionalUpdate(KEY, { set: { leaseUntil: 1 } }, noRow)).not.toHaveProperty(
      'ExpressionAttributeNames',
    );
  });

  test('returns the row as it stands after the write, and as it refused one', async () => {
    const table = memoryTable();
    const row = { ...KEY, schema: 1, status: 'PROCESSING', fence: 'f' };
    await table.write({ Put: { Item: row } });
    const write = (attempts: number) =>
      conditionalWrite(table, KEY, { set: { status: 'FAILED', attempts } }, HELD);
    await expect(write(1)).resolves.toEqual({ ok: true, item: { ...row, status: 'FAILED', attempts: 1 } });
    await expect(write(2)).resolves.toEqual({ ok: false, item: { ...row, status: 'FAILED', attempts: 1 } });
  });
});
