import { BatchExecuteStatementCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { EventBridgeClient, PutEventsCommand } from '@aws-sdk/client-eventbridge';
import {
  DeleteCommand,
  DynamoDBDocumentClient,
  GetCommand,
  PutCommand,
  QueryCommand,
  ScanCommand,
  TransactWriteCommand,
  UpdateCommand,
} from '@aws-sdk/lib-dynamodb';
import { describe, expect, it } from 'vitest';
import { createMeteredAws } from '../../../bench/aws/metered-aws.ts';
import { itemBytes } from '../../../lambdas/runtime/store/item-size.ts';
import type { Item } from '../../../lambdas/runtime/store/table.ts';

const TableName = 'rows';

function setUp() {
  const aws = createMeteredAws([
    {
      name: TableName,
      keys: ['pk', 'sk'],
      indexes: [
        { name: 'work', keys: ['queue', 'at'] },
        { name: 'lean', keys: ['lean', 'at'], projects: 'keys' },
      ],
    },
  ]);
  const documents = DynamoDBDocumentClient.from(new DynamoDBClient(aws.client));
  /** The units of the last request. */
  const units = () => {
    const { writeUnits, readUnits } = aws.requests().at(-1) ?? {};
    return { writeUnits, readUnits };
  };
  const put = async (Item: Item) => {
    await documents.send(new PutCommand({ TableName, Item }));
    return units().writeUnits;
  };
  return { aws, documents, units, put };
}

/** An item of exactly a given number of bytes. */
function sized(bytes: number, rest: Item = {}): Item {
  const item = { pk: 'p', sk: 's', ...rest, fill: '' };
  return { ...item, fill: 'x'.repeat(bytes - itemBytes(item)) };
}

const Key = { pk: 'p', sk: 's' };
const ABSENT = 'attribute_not_exists(pk)';
const refused = { name: 'ConditionalCheckFailedException' };

describe('a write', () => {
  it.each([
    [100, 1],
    [1_024, 1],
    [1_025, 2],
    [4_096, 4],
    [4_097, 5],
  ])('of %d bytes is %d units', async (bytes, expected) => {
    const { put } = setUp();
    expect(await put(sized(bytes))).toBe(expected);
  });

  it('counts the larger of the item before and after', async () => {
    const { put, documents, units } = setUp();
    await put(sized(3_000));
    expect(await put(sized(100))).toBe(3);
    expect(await put(sized(3_000))).toBe(3);
    await documents.send(new UpdateCommand({ TableName, Key, UpdateExpression: 'REMOVE fill' }));
    expect(units()).toEqual({ writeUnits: 3, readUnits: 0 });
    await documents.send(new DeleteCommand({ TableName, Key }));
    expect(units().writeUnits).toBe(1);
    await documents.send(new DeleteCommand({ TableName, Key }));
    expect(units().writeUnits).toBe(1);
  });

  it('that is refused counts all the same: the item that is there, or the one that should have been', async () => {
    const { put, documents, units } = setUp();
    await put(sized(2_000));
    const attempt = (Item: Item) =>
      documents.send(new PutCommand({ TableName, Item, ConditionExpression: ABSENT }));
    await expect(attempt(sized(100))).rejects.toMatchObject(refused);
    expect(units().writeUnits).toBe(2);
    await expect(attempt(sized(5_000))).rejects.toMatchObject(refused);
    expect(units().writeUnits).toBe(5);
    const nowhere = new UpdateCommand({
      TableName,
      Key: { pk: 'p', sk: 'none' },
      UpdateExpression: 'REMOVE a',
      ConditionExpression: 'attribute_exists(pk)',
    });
    await expect(documents.send(nowhere)).rejects.toMatchObject(refused);
    expect(units().writeUnits).toBe(1);
  });

  it('that is not a valid request counts nothing', async () => {
    const { documents, units } = setUp();
    const command = new UpdateCommand({ TableName, Key, UpdateExpression: 'SET pk = :a' });
    await expect(documents.send(command)).rejects.toMatchObject({ name: 'ValidationException' });
    expect(units()).toEqual({ writeUnits: 0, readUnits: 0 });
  });

  it('as a statement of a batch counts like the update that it is', async () => {
    const { put, aws, units } = setUp();
    await put(sized(1_500));
    const statement = (sk: string) => ({
      Statement: `UPDATE "${TableName}" SET "a"=? WHERE "pk"=? AND "sk"=? AND "fill"=?`,
      Parameters: [{ S: 'new' }, { S: 'p' }, { S: sk }, { S: 'other' }],
    });
    const client = new DynamoDBClient(aws.client);
    const command = new BatchExecuteStatementCommand({ Statements: [statement('s'), statement('none')] });
    const { Responses = [] } = await client.send(command);
    expect(Responses.map((response) => response.Error?.Code)).toEqual(
      Array(2).fill('ConditionalCheckFailed'),
    );
    expect(units().writeUnits).toBe(2 + 1);
  });
});

describe('a transaction', () => {
  const ConditionCheck = { TableName, Key: { pk: 'p', sk: 'other' }, ConditionExpression: ABSENT };

  it('counts every action twice, the checks too', async () => {
    const { documents, units } = setUp();
    const TransactItems = [{ Put: { TableName, Item: sized(1_500) } }, { ConditionCheck }];
    await documents.send(new TransactWriteCommand({ TransactItems }));
    expect(units()).toEqual({ writeUnits: 2 * 2 + 2 * 1, readUnits: 0 });
  });

  it('counts as much when it is cancelled', async () => {
    const { put, documents, units } = setUp();
    await put(sized(100, { sk: 'other' }));
    const TransactItems = [{ Put: { TableName, Item: sized(1_500) } }, { ConditionCheck }];
    await expect(documents.send(new TransactWriteCommand({ TransactItems }))).rejects.toMatchObject({
      name: 'TransactionCanceledException',
    });
    expect(units().writeUnits).toBe(2 * 2 + 2 * 1);
    expect((await documents.send(new GetCommand({ TableName, Key }))).Item).toBeUndefined();
  });

  it('that is sent again under its token reads its items', async () => {
    const { documents, units } = setUp();
    const TransactItems = [{ Put: { TableName, Item: sized(5_000) } }];
    const send = () => documents.send(new TransactWriteCommand({ TransactItems, ClientRequestToken: 'one' }));
    await send();
    await send();
    expect(units()).toEqual({ writeUnits: 0, readUnits: 2 * 2 });
  });
});

describe('an index', () => {
  const queued = { queue: 'a', at: '1' };

  it('counts an entry that comes, changes, moves and goes; one that stays costs nothing', async () => {
    const { put } = setUp();
    expect(await put(sized(1_500, queued))).toBe(2 + 2);
    expect(await put(sized(1_500, queued))).toBe(2);
    expect(await put(sized(1_500, { ...queued, other: 1 }))).toBe(2 + 2);
    expect(await put(sized(1_500, { ...queued, at: '2' }))).toBe(2 + 2 + 2);
    expect(await put(sized(1_500))).toBe(2 + 2);
    expect(await put(sized(1_600))).toBe(2);
  });

  it('of keys alone counts these', async () => {
    const { put } = setUp();
    expect(await put(sized(3_000, { lean: 'a', at: '1' }))).toBe(3 + 1);
    expect(await put(sized(3_000, { lean: 'a', at: '1', other: 1 }))).toBe(3);
    expect(await put(sized(3_000))).toBe(3 + 1);
  });

  it('follows a transaction at the ordinary rate', async () => {
    const { documents, units } = setUp();
    const TransactItems = [{ Put: { TableName, Item: sized(1_500, queued) } }];
    await documents.send(new TransactWriteCommand({ TransactItems }));
    expect(units().writeUnits).toBe(2 * 2 + 2);
  });

  it('is read like a table, and never strongly consistent', async () => {
    const { put, documents, units } = setUp();
    await put(sized(5_000, queued));
    const query = {
      TableName,
      IndexName: 'work',
      KeyConditionExpression: 'queue = :queue',
      ExpressionAttributeValues: { ':queue': 'a' },
    };
    const { Items } = await documents.send(new QueryCommand(query));
    expect(Items).toHaveLength(1);
    expect(units().readUnits).toBe(1);
    const consistent = new QueryCommand({ ...query, ConsistentRead: true });
    await expect(documents.send(consistent)).rejects.toMatchObject({ name: 'ValidationException' });
  });
});

describe('a read', () => {
  it.each([
    [undefined, 0.5, 1],
    [4_096, 0.5, 1],
    [4_097, 1, 2],
  ])('of an item of %s bytes is %d units, %d strongly consistent', async (bytes, eventual, strong) => {
    const { put, documents, units } = setUp();
    if (bytes !== undefined) await put(sized(bytes));
    await documents.send(new GetCommand({ TableName, Key }));
    expect(units()).toEqual({ writeUnits: 0, readUnits: eventual });
    await documents.send(new GetCommand({ TableName, Key, ConsistentRead: true }));
    expect(units().readUnits).toBe(strong);
  });

  it('of a page adds the sizes up before it rounds, and before the filter', async () => {
    const { put, documents, units } = setUp();
    for (const sk of ['1', '2', '3']) await put(sized(1_500, { sk }));
    const query = {
      TableName,
      KeyConditionExpression: 'pk = :pk',
      ExpressionAttributeValues: { ':pk': 'p' } as Item,
    };
    await documents.send(new QueryCommand(query));
    expect(units().readUnits).toBe(1); // 4,500 bytes
    const filtered = {
      ...query,
      FilterExpression: 'nothing = :pk',
      ConsistentRead: true,
    };
    expect(await documents.send(new QueryCommand(filtered))).toMatchObject({ Count: 0, ScannedCount: 3 });
    expect(units().readUnits).toBe(2);
    const from = { ...query, KeyConditionExpression: 'pk = :pk AND sk BETWEEN :low AND :high' };
    from.ExpressionAttributeValues = { ':pk': 'p', ':low': '2', ':high': '3' };
    expect(await documents.send(new QueryCommand({ ...from, ScanIndexForward: false }))).toMatchObject({
      Items: [{ sk: '3' }, { sk: '2' }],
    });
    expect(units().readUnits).toBe(0.5); // 3,000 bytes
  });

  it('of nothing counts like the smallest', async () => {
    const { documents, units } = setUp();
    await documents.send(new ScanCommand({ TableName }));
    expect(units().readUnits).toBe(0.5);
  });

  it('of a whole table goes on from page to page, and sees every item once', async () => {
    const { aws, documents } = setUp();
    const items = Array.from({ length: 12 }, (_, n) => sized(300_000, { pk: `p${n % 5}`, sk: `s${n}` }));
    aws.seed(TableName, items);
    expect(aws.requests()).toEqual([]);
    const found: unknown[] = [];
    let ExclusiveStartKey: Record<string, unknown> | undefined;
    do {
      const page = await documents.send(new ScanCommand({ TableName, ExclusiveStartKey }));
      found.push(...(page.Items ?? []).map(({ sk }) => sk));
      ExclusiveStartKey = page.LastEvaluatedKey;
    } while (ExclusiveStartKey);
    expect(found.toSorted()).toEqual(items.map(({ sk }) => sk).toSorted());
    // Four items fill a page of 1 MB: 293 started 4 KB, half a unit each.
    expect(aws.requests().map(({ readUnits }) => readUnits)).toEqual([146.5, 146.5, 146.5, 0.5]);
  });
});

describe('the bus', () => {
  it('counts accepted entries per started 64 KB, and fails injected ones', async () => {
    const { aws } = setUp();
    const entry = (bytes: number) => ({ Source: 's', DetailType: 't', Detail: 'x'.repeat(bytes - 2) });
    const Entries = [entry(100), entry(65_536), entry(65_537)];
    const bus = new EventBridgeClient(aws.client);
    await aws.during('relay', () => bus.send(new PutEventsCommand({ Entries })));
    expect(aws.requests()).toMatchObject([{ operation: 'PutEvents', step: 'relay', billed: 1 + 1 + 2 }]);
    aws.failNextEntries(2);
    const answer = await bus.send(new PutEventsCommand({ Entries }));
    expect(answer.FailedEntryCount).toBe(2);
    expect(aws.requests().at(-1)?.billed).toBe(2);
    expect(aws.takePublished()).toHaveLength(3 + 1);
    expect(aws.takePublished()).toEqual([]);
  });
});

it('returns the inserts of a table, and no other change', async () => {
  const { aws, put } = setUp();
  await put(sized(100));
  await put(sized(200));
  expect(aws.takeInserts(TableName).map(({ eventName, dynamodb }) => [eventName, dynamodb?.Keys])).toEqual([
    ['INSERT', { pk: { S: 'p' }, sk: { S: 's' } }],
  ]);
  expect(aws.takeInserts(TableName)).toEqual([]);
});

it('gives no count after an unsupported request', async () => {
  const { aws, documents } = setUp();
  const command = new QueryCommand({ TableName, KeyConditionExpression: 'pk = :p', Select: 'COUNT' });
  await expect(documents.send(command)).rejects.toThrow('does not support Query with Select');
  expect(() => aws.requests()).toThrow('does not support Query with Select');
});
