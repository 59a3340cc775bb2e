import { unmarshall } from '@aws-sdk/util-dynamodb';
import { describe, expect, it } from 'vitest';
import { manualClock, memoryTable } from '../../../testing/index.ts';

const key = { PK: 'P', SK: 'S' };

describe('the table in memory', () => {
  it('shows its items, in order and as copies', async () => {
    const table = memoryTable({ name: 'Shop' });
    await table.transact([
      { Put: { Item: { PK: 'P', SK: 'b', list: [1] } } },
      { Put: { Item: { PK: 'P', SK: 'a' } } },
      { Put: { Item: { PK: 'A', SK: 'z' }, TableName: 'Shop' } },
    ]);
    expect(table.items().map((item) => `${item.PK} ${item.SK}`)).toEqual(['A z', 'P a', 'P b']);
    table.item({ PK: 'P', SK: 'b' })?.list.push(2);
    expect(table.item({ PK: 'P', SK: 'b' })).toEqual({ PK: 'P', SK: 'b', list: [1] });
    expect(table.item({ PK: 'P', SK: 'c' })).toBeUndefined();
  });

  it('streams changes in the form that Lambda receives', async () => {
    const clock = manualClock(1_800_000_000_900);
    const table = memoryTable({ clock });
    await table.write({ Put: { Item: { ...key, n: 1, bytes: new Uint8Array([255]) } } });
    await table.write({ Put: { Item: { ...key, n: 1, bytes: new Uint8Array([255]) } } });
    await clock.advance(100);
    await table.updateEach([{ key, set: { n: 2 }, when: { n: 1 } }]);
    await table.write({ Delete: { Key: key } });
    await table.write({ Delete: { Key: key } });
    const records = table.stream();
    expect(records.map((record) => record.eventName)).toEqual(['INSERT', 'MODIFY', 'REMOVE']);
    expect(records[0]?.dynamodb).toMatchObject({
      ApproximateCreationDateTime: 1_800_000_000,
      Keys: { PK: { S: 'P' }, SK: { S: 'S' } },
      NewImage: { PK: { S: 'P' }, SK: { S: 'S' }, n: { N: '1' }, bytes: { B: '/w==' } },
      StreamViewType: 'NEW_IMAGE',
    });
    expect(records[1]?.dynamodb?.ApproximateCreationDateTime).toBe(1_800_000_001);
    expect(records[2]?.dynamodb?.NewImage).toBeUndefined();
    const numbers = records.map((record) => BigInt(record.dynamodb?.SequenceNumber ?? 0));
    expect(numbers).toEqual(numbers.toSorted((a, b) => (a < b ? -1 : 1)));
    expect(new Set(numbers).size).toBe(3);
    expect(unmarshall(records[1]?.dynamodb?.NewImage as never)).toMatchObject({ n: 2 });
  });

  it('expires due items, and names TTL in the stream', async () => {
    const clock = manualClock();
    const table = memoryTable({ clock });
    const seconds = clock.now() / 1000;
    await table.write({ Put: { Item: { PK: 'P', SK: 'due', expiresAt: seconds + 10 } } });
    await table.write({ Put: { Item: { PK: 'P', SK: 'later', expiresAt: seconds + 20 } } });
    await table.write({ Put: { Item: { PK: 'P', SK: 'never' } } });
    await clock.advance(15_000);
    expect(table.expire()).toBe(1);
    expect(table.items().map((item) => item.SK)).toEqual(['later', 'never']);
    expect(table.stream().at(-1)).toMatchObject({
      eventName: 'REMOVE',
      userIdentity: { type: 'Service', principalId: 'dynamodb.amazonaws.com' },
    });
  });

  it('forgets a token after 10 minutes', async () => {
    const clock = manualClock();
    const table = memoryTable({ clock });
    const Update = { Key: key, UpdateExpression: 'ADD n :one', ExpressionAttributeValues: { ':one': 1 } };
    await table.transact([{ Update }], 'token');
    await clock.advance(599_999);
    await table.transact([{ Update }], 'token');
    expect(table.item(key)?.n).toBe(1);
    await clock.advance(1);
    await table.transact([{ Update }], 'token');
    expect(table.item(key)?.n).toBe(2);
  });

  it('distinguishes tokens by the whole request, including sets', async () => {
    const table = memoryTable();
    const put = (tag: string) => ({ Put: { Item: { ...key, tags: new Set([tag]) } } });
    await table.transact([put('a')], 'token');
    await expect(table.transact([put('b')], 'token')).rejects.toMatchObject({
      name: 'IdempotentParameterMismatchException',
    });
  });

  it("takes the service's own tables into its transactions", async () => {
    const table = memoryTable({ otherTables: { Orders: ['orderId'], Lines: ['orderId', 'line'] } });
    const line = { TableName: 'Lines', Item: { orderId: 'o', line: 1, sku: 'x' } };
    await table.transact([
      {
        Put: {
          TableName: 'Orders',
          Item: { orderId: 'o' },
          ConditionExpression: 'attribute_not_exists(orderId)',
        },
      },
      { Put: line },
      { Put: { Item: key } },
    ]);
    expect(table.items('Orders')).toEqual([{ orderId: 'o' }]);
    expect(table.items('Lines')).toEqual([line.Item]);
    expect(table.stream()).toHaveLength(1);
    await expect(table.write({ Put: { TableName: 'Other', Item: key } })).rejects.toThrow('otherTables');
  });

  it("the table's creation time is the time of its construction", async () => {
    const clock = manualClock(5_000);
    const table = memoryTable({ clock });
    await clock.advance(1_000);
    expect(await table.createdAt()).toBe(5_000);
  });
});
