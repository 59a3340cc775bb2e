import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SQSClient } from '@aws-sdk/client-sqs';
import { expect, test, vi } from 'vitest';
import { EVENT, fixedRandom } from '../../../bench/alternatives/workload.ts';
import { PRICES } from '../../../bench/assumptions.ts';
import { createMeteredAws } from '../../../bench/aws/metered-aws.ts';
import { publishedRow } from '../../../bench/cost/mailroom.ts';
import { TABLE } from '../../../bench/cost/sweep-minute.ts';
import type { Deployment } from '../../../cli/deployment/deployment.ts';
import { dynamoRows } from '../../../cli/deployment/dynamo-rows.ts';
import { createLive } from '../../../cli/page/server/live.ts';
import type { Flow } from '../../../cli/page/server/protocol.ts';
import type { Directory } from '../../../lambdas/runtime/operations/directory.ts';
import { sqsQueues } from '../../../lambdas/runtime/operations/sqs-queues.ts';
import { dynamoTable } from '../../../lambdas/runtime/store/dynamo/dynamo-table.ts';
import { mintEventId, outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import { SWEEP_STATE_KEY } from '../../../lambdas/runtime/store/keys.ts';
import { SCHEMA } from '../../../lambdas/runtime/store/row-schema.ts';
import { manualClock } from '../../../testing/index.ts';
import { STUB_CONFIGURATION, stubHandler } from '../../support/stub-client.ts';
import { queueArn, directory as small, worker } from '../cli/support/mailroom-in-memory.ts';
import { resourcesInMemory } from '../cli/support/resources-in-memory.ts';

const SHARDS = 8;

/** The most calls per minute: the cursor's 276, which reads two minutes around the turn of one, the readings of the status, with its checks, one of the entries of other sources, and 16 for the two youngest minutes of its sample. Scheduled events are read when the page is opened and every ten minutes, in 568 calls, of which these minutes have none. */
const CALLS_PER_MINUTE = { DynamoDB: 469, SQS: 80, wiring: 45 };

const directory: Directory = {
  mailroom: { ...small.mailroom, table: TABLE, shards: SHARDS },
  consumers: ['inventory', 'notifications', 'payments'].map((name) => ({
    ...worker,
    name,
    events: [EVENT],
    function: `${name}-function`,
    rule: `${name}-rule`,
    queue: `https://sqs/${name}`,
    deadLetterQueue: `https://sqs/${name}-dead-letters`,
    undeliveredQueue: `https://sqs/${name}-undelivered`,
  })),
};

/** Keeps the page of a Mailroom open. @param eventsPerS - that no consumer ever processes */
async function watched(minutes: number, eventsPerS: number) {
  const clock = manualClock();
  const aws = createMeteredAws([{ name: TABLE, keys: ['PK', 'SK'] }], { clock });
  const dynamo = new DynamoDBClient(aws.client);
  const requestHandler = stubHandler(() => {
    const { QueueUrl } = requestHandler.requests.at(-1) as { readonly QueueUrl: string };
    return {
      status: 200,
      body: { Attributes: { QueueArn: queueArn(QueueUrl), MessageRetentionPeriod: '60' } },
    };
  });
  const sqs = new SQSClient({ ...STUB_CONFIGURATION, requestHandler: requestHandler as never });
  const calls = { wiring: 0 };
  const { resources } = resourcesInMemory(directory);
  const table = dynamoTable({ client: dynamo, tableName: TABLE });
  /** A port's read that takes a number of calls. */
  const counted =
    <Args extends readonly unknown[], Result>(read: (...args: Args) => Promise<Result>, count = 1) =>
    (...args: Args) => {
      calls.wiring += count;
      return read(...args);
    };
  const deployment = {
    directory,
    region: 'us-east-1',
    clock,
    table,
    stored: dynamoRows(table),
    queues: sqsQueues(sqs),
    resources: {
      ...Object.fromEntries(Object.entries(resources).map(([name, read]) => [name, counted(read)])),
      // The rule and its targets.
      rule: counted(resources.rule, 2),
    },
    commandLine: (command: string) => command,
    awsLine: (command: string) => command,
  } as unknown as Deployment;
  const live = createLive(deployment);
  const row = await publishedRow(1_024);
  const random = fixedRandom();
  const settled = () => vi.waitUntil(() => clock.sleeping() === 3, { timeout: 60_000, interval: 1 });

  /** The price of all reads so far; those of EventBridge and Lambda are free. */
  const usd = () =>
    (aws.requests().reduce((sum, { readUnits }) => sum + readUnits, 0) * PRICES.readUnitsPerMillion +
      requestHandler.requests.length * PRICES.queueRequestsPerMillion) /
    1e6;
  let flow: Flow | undefined;
  const seed = () => {
    const state = { ...SWEEP_STATE_KEY, schema: SCHEMA, shards: SHARDS };
    if (clock.now() % 60_000 === 0) aws.seed(TABLE, [{ ...state, sweptTo: clock.now() }]);
    const ids = Array.from({ length: eventsPerS }, () => mintEventId(clock.now(), SHARDS, random));
    aws.seed(
      TABLE,
      ids.map((eventId) => ({ ...row, ...outboxKeyOf(eventId) })),
    );
  };
  seed();
  const close = live.subscribe((message) => {
    if (message.kind === 'flow') flow = message.flow;
  });
  await settled();
  const callsSoFar = () => ({
    DynamoDB: aws.requests().length,
    SQS: requestHandler.requests.length,
    wiring: calls.wiring,
  });
  const opened = callsSoFar();
  const openedUsd = usd();
  for (let second = 0; second < minutes * 60; second += 1) {
    await clock.advance(1_000);
    seed();
    await settled();
  }
  close();
  if (flow === undefined) throw new Error('No flow was sent');
  const { unread, isSample } = flow;
  const closed = callsSoFar();
  const perMinute = (part: keyof typeof opened) => (closed[part] - opened[part]) / minutes;
  return {
    unread,
    isSample,
    usdPerHour: ((usd() - openedUsd) * 60) / minutes,
    perMinute: { DynamoDB: perMinute('DynamoDB'), SQS: perMinute('SQS'), wiring: perMinute('wiring') },
  };
}

test('the page of a quiet Mailroom with 8 shards and 3 consumers costs less than a cent an hour', async () => {
  const page = await watched(3, 0);
  expect(page).toMatchObject({ unread: [], isSample: false });
  for (const part of ['DynamoDB', 'SQS', 'wiring'] as const)
    expect(page.perMinute[part]).toBeLessThanOrEqual(CALLS_PER_MINUTE[part]);
  expect(page.usdPerHour).toBeLessThan(0.01);
});

test('the page of a Mailroom in which 50 events are always unfinished costs about two cents an hour', async () => {
  const page = await watched(3, 20);
  expect(page).toMatchObject({ unread: [], isSample: false });
  expect(page.usdPerHour).toBeGreaterThan(0.01);
  expect(page.usdPerHour).toBeLessThan(0.03);
});
