import { CloudWatchClient, GetMetricDataCommand } from '@aws-sdk/client-cloudwatch';
import {
  BatchGetItemCommand,
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
} from '@aws-sdk/client-dynamodb';
import { expect, test } from 'vitest';
import { createCostMeter } from '../../../../../../cli/page/server/live/cost-meter.ts';
import { manualClock } from '../../../../../../testing/index.ts';
import { STUB_CONFIGURATION, type StubAnswer, stubHandler } from '../../../../../support/stub-client.ts';

const ok = (body: object): StubAnswer => ({ status: 200, body });

/** A DynamoDB client whose requests get these answers. */
function dynamo(answer: (request: number) => StubAnswer, maxAttempts = 1) {
  const requestHandler = stubHandler(answer);
  const client = new DynamoDBClient({
    ...STUB_CONFIGURATION,
    maxAttempts,
    requestHandler: requestHandler as never,
  });
  return { client, requests: requestHandler.requests };
}

test('the read units are those that DynamoDB returns, and a million of them have their price', async () => {
  const { client } = dynamo((request) =>
    request === 3
      ? ok({ ConsumedCapacity: [{ CapacityUnits: 250_000 }, { CapacityUnits: 125_000 }] })
      : ok({ ConsumedCapacity: { CapacityUnits: 312_500 } }),
  );
  const meter = createCostMeter({ DynamoDB: [client] }, manualClock());
  const Key = { PK: { S: 'a' }, SK: { S: 'b' } };
  await client.send(new QueryCommand({ TableName: 't', KeyConditionExpression: 'PK = :a' }));
  await client.send(new GetItemCommand({ TableName: 't', Key }));
  await client.send(new BatchGetItemCommand({ RequestItems: { t: { Keys: [Key] } } }));
  expect(meter.cost()).toMatchObject({ calls: { DynamoDB: 3 }, readUnits: 1_000_000, usd: 0.125 });
});

test('a write is sent as it is, and counted as a call', async () => {
  const { client, requests } = dynamo(() => ok({}));
  const meter = createCostMeter({ DynamoDB: [client] }, manualClock());
  await client.send(new QueryCommand({ TableName: 't', KeyConditionExpression: 'PK = :a' }));
  await client.send(new PutItemCommand({ TableName: 't', Item: { PK: { S: 'a' } } }));
  expect(requests).toEqual([
    { TableName: 't', KeyConditionExpression: 'PK = :a', ReturnConsumedCapacity: 'TOTAL' },
    { TableName: 't', Item: { PK: { S: 'a' } } },
  ]);
  expect(meter.cost()).toMatchObject({ calls: { DynamoDB: 2 }, readUnits: 0 });
});

test('an endpoint that returns no capacity costs nothing', async () => {
  const { client } = dynamo(() => ok({ Items: [] }));
  const meter = createCostMeter({ DynamoDB: [client] }, manualClock());
  await client.send(new QueryCommand({ TableName: 't', KeyConditionExpression: 'PK = :a' }));
  expect(meter.cost()).toMatchObject({ calls: { DynamoDB: 1 }, readUnits: 0, usd: 0 });
});

test('a retry is a call, and so is a request that fails', async () => {
  const fault = { status: 500, body: { __type: 'InternalServerError' } };
  const { client } = dynamo((request) => (request < 3 ? fault : ok({})), 3);
  const meter = createCostMeter({ DynamoDB: [client] }, manualClock());
  await client.send(new GetItemCommand({ TableName: 't', Key: { PK: { S: 'a' } } }));
  expect(meter.cost().calls).toEqual({ DynamoDB: 3 });
});

test('a metric of GetMetricData is priced, and not the request', async () => {
  const requestHandler = { handle: async () => Promise.reject(new Error('No network')) };
  const client = new CloudWatchClient({
    ...STUB_CONFIGURATION,
    maxAttempts: 1,
    requestHandler: requestHandler as never,
  });
  const meter = createCostMeter({ CloudWatch: [client] }, manualClock());
  const MetricDataQueries = Array.from({ length: 100 }, (_, n) => ({ Id: `m${n}` }));
  const [StartTime, EndTime] = [new Date(0), new Date(1)];
  await client.send(new GetMetricDataCommand({ MetricDataQueries, StartTime, EndTime })).catch(() => {});
  expect(meter.cost()).toMatchObject({ calls: { CloudWatch: 1 }, usd: 0.001 });
});

test('the cost per hour is that of the last five minutes, and of at least one', async () => {
  const { client } = dynamo(() => ok({ ConsumedCapacity: { CapacityUnits: 8_000_000 } }));
  const clock = manualClock();
  const meter = createCostMeter({ DynamoDB: [client] }, clock);
  const spendOneDollar = () =>
    client.send(new QueryCommand({ TableName: 't', KeyConditionExpression: 'PK = :a' }));
  await spendOneDollar();
  expect(meter.cost()).toMatchObject({ usd: 1, usdPerHour: 60 });
  await clock.advance(150_000);
  expect(meter.cost().usdPerHour).toBe(24);
  await spendOneDollar();
  await clock.advance(150_000);
  // The first dollar was spent five minutes ago.
  expect(meter.cost()).toMatchObject({ usd: 2, usdPerHour: 12 });
  await clock.advance(150_000);
  expect(meter.cost().usdPerHour).toBe(12);
  await clock.advance(600_000);
  expect(meter.cost()).toMatchObject({ usd: 2, usdPerHour: 0 });
});
