import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { expect, test } from 'vitest';
import { selectPartitions } from '../../../cli/deployment/select-partitions.ts';
import { STUB_CONFIGURATION, type StubAnswer, stubHandler } from '../../support/stub-client.ts';

function selecting(...answers: readonly StubAnswer[]) {
  const handler = stubHandler((request) => answers[request - 1] ?? { status: 500, body: {} });
  const client = new DynamoDBClient({ ...STUB_CONFIGURATION, requestHandler: handler, maxAttempts: 1 });
  return { read: selectPartitions({ client, tableName: 'Orders' }), requests: handler.requests };
}

const row = (PK: string) => ({ PK: { S: PK }, SK: { S: 'EVENT#1' } });
const page = (PK: string, more?: string): StubAnswer => ({
  status: 200,
  body: { Items: [row(PK)], ...(more !== undefined && { NextToken: more }) },
});
const refused = (name: string): StubAnswer => ({ status: 400, body: { __type: name } });

test('partitions are read by one statement of quoted names and parameters', async () => {
  const { read, requests } = selecting(page('A'));
  const rows = await read(['A', 'B'], { skPrefix: 'EVENT#', where: { status: 'PENDING' }, limit: 5 });
  expect(rows).toEqual([{ PK: 'A', SK: 'EVENT#1' }]);
  expect(requests).toEqual([
    {
      Statement: 'SELECT * FROM "Orders" WHERE "PK" IN [?,?] AND begins_with("SK", ?) AND "status" = ?',
      Parameters: [{ S: 'A' }, { S: 'B' }, { S: 'EVENT#' }, { S: 'PENDING' }],
      Limit: 10,
    },
  ]);
});

test('a few pages are followed, and more are left to queries of each partition', async () => {
  const followed = selecting(page('A', '1'), page('B'));
  expect(await followed.read(['A', 'B'], {})).toHaveLength(2);
  const large = selecting(page('A', '1'), page('A', '2'), page('A', '3'), page('A'));
  expect(await large.read(['A', 'B'], {})).toBeUndefined();
  expect(large.requests).toHaveLength(3);
});

test('a caller that wants a few rows of each partition reads one page', async () => {
  const { read, requests } = selecting(page('A', '1'), page('B'));
  expect(await read(['A', 'B'], { limit: 5 })).toBeUndefined();
  expect(requests).toHaveLength(1);
});

test.each(['AccessDeniedException', 'UnknownOperationException', 'ValidationException'])(
  'a statement that is refused with %s is not made again',
  async (name) => {
    const { read, requests } = selecting(refused(name));
    expect(await read(['A', 'B'], {})).toBeUndefined();
    expect(await read(['C', 'D'], {})).toBeUndefined();
    expect(requests).toHaveLength(1);
  },
);

test('any other error is thrown, and does not end the use of statements', async () => {
  const { read } = selecting(refused('InternalServerError'), page('A'));
  await expect(read(['A', 'B'], {})).rejects.toThrow();
  expect(await read(['A', 'B'], {})).toHaveLength(1);
});
