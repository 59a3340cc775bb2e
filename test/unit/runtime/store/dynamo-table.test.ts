import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { describe, expect, it } from 'vitest';
import { dynamoTable } from '../../../../lambdas/runtime/store/dynamo/dynamo-table.ts';
import type { EachUpdate, Item } from '../../../../lambdas/runtime/store/table.ts';
import { STUB_CONFIGURATION, type StubAnswer, stubHandler } from '../../../support/stub-client.ts';

function tableAnswering(...answers: readonly StubAnswer[]) {
  const handler = stubHandler((request) => answers[request - 1] ?? { status: 500, body: {} });
  const client = new DynamoDBClient({ ...STUB_CONFIGURATION, requestHandler: handler, maxAttempts: 1 });
  return { table: dynamoTable({ client, tableName: 'Orders' }), requests: handler.requests };
}

const mark = (SK: string): EachUpdate => ({
  key: { PK: 'P', SK },
  set: { status: 'PUBLISHED', expiresAt: 9 },
  remove: ['lastError'],
  when: { status: 'PENDING', leaseUntil: 1 },
});

describe('the table on DynamoDB', () => {
  it('makes updateEach one call of quoted, parameterised statements', async () => {
    const { table, requests } = tableAnswering({ status: 200, body: { Responses: [{}] } });
    expect(await table.updateEach([mark('a')])).toEqual([{ ok: true }]);
    expect(requests).toEqual([
      {
        Statements: [
          {
            Statement:
              'UPDATE "Orders" SET "status"=? SET "expiresAt"=? REMOVE "lastError" ' +
              'WHERE "PK"=? AND "SK"=? AND "status"=? AND "leaseUntil"=?',
            Parameters: [
              { S: 'PUBLISHED' },
              { N: '9' },
              { S: 'P' },
              { S: 'a' },
              { S: 'PENDING' },
              { N: '1' },
            ],
            ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
          },
        ],
      },
    ]);
  });

  it('reads up to 100 keys in one request, each once', async () => {
    const row = { PK: { S: 'P' }, SK: { S: '7' } };
    const { table, requests } = tableAnswering(
      { status: 200, body: { Responses: { Orders: [row] } } },
      { status: 200, body: { Responses: {}, UnprocessedKeys: {} } },
    );
    const keys = [...Array(101).keys()].map((n) => ({ PK: 'P', SK: `${n}` }));
    const found = await table.getEach([...keys, ...keys]);
    expect(found.flatMap((item, index) => (item === undefined ? [] : [index]))).toEqual([7, 108]);
    const asked = keys.map(({ PK, SK }) => ({ PK: { S: PK }, SK: { S: SK } }));
    expect(requests).toEqual([
      { RequestItems: { Orders: { Keys: asked.slice(0, 100), ConsistentRead: false } } },
      { RequestItems: { Orders: { Keys: asked.slice(100), ConsistentRead: false } } },
    ]);
  });

  it('reads a key that a batch left unread by itself, as consistently', async () => {
    const [a, b] = ['a', 'b'].map((SK) => ({ PK: { S: 'P' }, SK: { S: SK } }));
    const UnprocessedKeys = { Orders: { Keys: [b], ConsistentRead: true } };
    const { table, requests } = tableAnswering(
      { status: 200, body: { Responses: { Orders: [a] }, UnprocessedKeys } },
      { status: 200, body: { Item: { ...b, n: { N: '2' } } } },
    );
    const keys = ['a', 'b', 'c'].map((SK) => ({ PK: 'P', SK }));
    expect(await table.getEach(keys, { consistent: true })).toEqual([
      keys[0],
      { ...keys[1], n: 2 },
      undefined,
    ]);
    expect(requests[1]).toEqual({ TableName: 'Orders', Key: b, ConsistentRead: true });
  });

  it('fails a read of several items if one of them cannot be read', async () => {
    const UnprocessedKeys = { Orders: { Keys: [{ PK: { S: 'P' }, SK: { S: 'a' } }] } };
    const throttle = { __type: 'ProvisionedThroughputExceededException', message: 'slow down' };
    const { table } = tableAnswering(
      { status: 200, body: { Responses: {}, UnprocessedKeys } },
      { status: 400, body: throttle },
    );
    await expect(table.getEach([{ PK: 'P', SK: 'a' }])).rejects.toMatchObject({
      name: 'ProvisionedThroughputExceededException',
    });
  });

  it('tells throttles, refusals and updates without an answer apart', async () => {
    const row = { PK: { S: 'P' }, SK: { S: 'b' }, status: { S: 'DEAD' }, views: { N: '9007199254740993.5' } };
    const { table } = tableAnswering({
      status: 200,
      body: {
        Responses: [
          { Error: { Code: 'ThrottlingError', Message: 'slow down' } },
          { Error: { Code: 'ConditionalCheckFailed', Message: 'no', Item: row } },
        ],
      },
    });
    expect(await table.updateEach([mark('a'), mark('b'), mark('c')])).toEqual([
      { ok: false, refused: false, code: 'ThrottlingError', message: 'slow down' },
      {
        ok: false,
        refused: true,
        item: {
          PK: 'P',
          SK: 'b',
          status: 'DEAD',
          views: expect.objectContaining({ value: '9007199254740993.5' }),
        },
      },
      { ok: false, refused: false, code: 'NO_ANSWER', message: expect.any(String) },
    ]);
  });

  it('reads the row of a refusal that came without it', async () => {
    const row = { PK: { S: 'P' }, SK: { S: 'a' }, status: { S: 'DEAD' } };
    const { table, requests } = tableAnswering(
      { status: 200, body: { Responses: [{ Error: { Code: 'ConditionalCheckFailed', Message: 'no' } }] } },
      { status: 200, body: { Item: row } },
    );
    expect(await table.updateEach([mark('a')])).toEqual([
      { ok: false, refused: true, item: { PK: 'P', SK: 'a', status: 'DEAD' } },
    ]);
    expect(requests[1]).toEqual({
      TableName: 'Orders',
      Key: { PK: { S: 'P' }, SK: { S: 'a' } },
      ConsistentRead: true,
    });
  });

  it('sends nothing for no updates, or for updates that are invalid', async () => {
    const { table, requests } = tableAnswering();
    expect(await table.updateEach([])).toEqual([]);
    await expect(table.updateEach([{ ...mark('a'), when: { status: undefined } }])).rejects.toThrow(
      'compares status with a value of type undefined',
    );
    expect(requests).toEqual([]);
  });

  it('sends nothing of a value that cannot be stored', async () => {
    const { table, requests } = tableAnswering();
    const item: Item = { PK: 'P', SK: 'a', at: new Date() };
    const refused = { code: 'BAD_ITEM' };
    await expect(table.write({ Put: { Item: item } })).rejects.toMatchObject(refused);
    await expect(table.transact([{ Put: { Item: item } }])).rejects.toMatchObject(refused);
    const { at } = item;
    await expect(table.updateEach([{ ...mark('a'), set: { at } }])).rejects.toMatchObject(refused);
    expect(requests).toEqual([]);
  });

  it('sends a transaction with the given token, so that a repeated send changes nothing', async () => {
    const { table, requests } = tableAnswering({ status: 200, body: {} });
    await table.transact([{ Put: { Item: { PK: 'P', SK: 'a' } } }], 'the-token');
    expect(requests).toMatchObject([{ ClientRequestToken: 'the-token' }]);
  });

  it('reads a cancelled transaction reason by reason', async () => {
    const { table } = tableAnswering({
      status: 400,
      body: {
        __type: 'com.amazonaws.dynamodb.v20120810#TransactionCanceledException',
        Message: 'Transaction cancelled',
        CancellationReasons: [
          { Code: 'None' },
          { Code: 'ConditionalCheckFailed', Message: 'no', Item: { PK: { S: 'P' }, tags: { SS: ['a'] } } },
          { Code: 'TransactionConflict', Message: 'busy' },
          { Code: 'ThrottlingError', Message: 'slow down' },
        ],
      },
    });
    const Put = { Item: { PK: 'P', SK: 'a' } };
    await expect(table.transact([{ Put }])).rejects.toMatchObject({
      code: 'TRANSACTION_CANCELLED',
      reasons: [
        { code: 'None' },
        { code: 'ConditionalCheckFailed', message: 'no', item: { PK: 'P', tags: new Set(['a']) } },
        { code: 'TransactionConflict', message: 'busy' },
        { code: 'ThrottlingError', message: 'slow down' },
      ],
      cause: expect.objectContaining({ name: 'TransactionCanceledException' }),
    });
  });

  it('lets every other error through as it is', async () => {
    const throttle = { __type: 'ProvisionedThroughputExceededException', message: 'slow down' };
    const { table } = tableAnswering({ status: 400, body: throttle }, { error: new Error('socket hang up') });
    const Put = { Item: { PK: 'P', SK: 'a' } };
    await expect(table.write({ Put })).rejects.toMatchObject({
      name: 'ProvisionedThroughputExceededException',
    });
    await expect(table.transact([{ Put }])).rejects.toThrow('socket hang up');
  });

  it('refuses to guess a creation time', async () => {
    const { table } = tableAnswering({ status: 200, body: { Table: {} } });
    await expect(table.createdAt()).rejects.toMatchObject({ code: 'NO_CREATION_TIME' });
  });
});
