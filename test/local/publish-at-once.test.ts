import { randomUUID } from 'node:crypto';
import { rename, rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { DynamoDBDocumentClient, GetCommand } from '@aws-sdk/lib-dynamodb';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CONSUMER } from '../../bench/latency/producers.ts';
import { required } from '../../demo/readings.ts';
import type { Item, Key } from '../../lambdas/runtime/index.ts';
import { outboxKeyOf } from '../../lambdas/runtime/store/event-id.ts';
import { inboxKey } from '../../lambdas/runtime/store/rows.ts';
import type { Outputs } from '../../localstack/cdk-process.ts';
import { deployLocal } from '../../localstack/deploy.ts';
import { type Engine, startEngine } from '../../localstack/engine.ts';
import { freePort } from '../../localstack/free-port.ts';
import { LOCAL_REGION, localFile } from '../../localstack/workspace.ts';
import { eventually } from './support/eventually.ts';

let engine: Engine;
let outputs: Outputs;
let lambda: LambdaClient;
let documents: DynamoDBDocumentClient;

beforeAll(async () => {
  // An engine of its own: that of the other tests has the outputs of another app.
  engine = await startEngine({ port: await freePort(), env: {} });
  const appDir = fileURLToPath(new URL('publish-at-once', import.meta.url));
  outputs = await deployLocal({ endpoint: engine.endpoint, appDir });
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  const settings = { endpoint: engine.endpoint, region: LOCAL_REGION, credentials };
  lambda = new LambdaClient(settings);
  documents = DynamoDBDocumentClient.from(new DynamoDBClient(settings));
});

afterAll(async () => {
  await engine?.stop();
  if (engine?.logFile) await rename(engine.logFile, localFile('engine-of-publish-at-once.log'));
  await rm(localFile(`outputs-${engine?.port}.json`), { force: true });
});

/** Places an order by one of the producers. @returns the id of its event */
async function placeBy(producer: 'Api' | 'CutOff'): Promise<string> {
  const { Payload, FunctionError } = await lambda.send(
    new InvokeCommand({
      FunctionName: required(outputs, `${producer}Function`),
      Payload: JSON.stringify({ orderId: randomUUID() }),
    }),
  );
  const answer = Buffer.from(Payload ?? []).toString();
  expect(FunctionError, answer).toBeUndefined();
  return JSON.parse(answer);
}

async function read(key: Key): Promise<Item | undefined> {
  const command = new GetCommand({
    TableName: required(outputs, 'TableName'),
    Key: { ...key },
    ConsistentRead: true,
  });
  return (await documents.send(command)).Item;
}

const published = (eventId: string) =>
  eventually(async () => {
    const row = await read(outboxKeyOf(eventId));
    expect(row).toMatchObject({ status: 'PUBLISHED', attempts: 0 });
    return row;
  });

const processed = (eventId: string) =>
  eventually(async () => {
    expect(await read(inboxKey(CONSUMER, eventId))).toMatchObject({ status: 'PROCESSED' });
  });

test('an order arrives, published by its producer', async () => {
  // On a machine too slow for a turn of five seconds, the relay publishes: then it is tried with another order.
  const eventId = await eventually(async () => {
    const placed = await placeBy('Api');
    expect(await published(placed)).toMatchObject({ publishedBy: 'producer' });
    return placed;
  });
  await processed(eventId);
});

test('an order whose producer cannot reach the bus arrives, published by the relay', async () => {
  const eventId = await placeBy('CutOff');
  const row = await published(eventId);
  expect(row?.publishedBy).toMatch(/^(stream|sweep)$/);
  expect(row?.publishedAt).toBeGreaterThan(Number(row?.producerUntil));
  await processed(eventId);
});
