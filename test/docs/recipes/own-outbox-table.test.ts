import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient, ScanCommand, UpdateCommand } from '@aws-sdk/lib-dynamodb';
import { expect, test } from 'vitest';
import { createMeteredAws } from '../../../bench/aws/metered-aws.ts';
import {
  createConsumer,
  createOutbox,
  dynamoTable,
  type Handler,
  type Item,
  type Outbox,
  type TransactAction,
} from '../../../lambdas/runtime/index.ts';
import {
  consumerConfig,
  manualClock,
  memoryQueue,
  memoryTable,
  memoryTelemetry,
  producerConfig,
} from '../../../testing/index.ts';
import { crashSchedules, type Turn } from '../../support/crash-schedules.ts';
import { codeOf } from '../page-module.ts';

const page = 'docs/recipes/own-outbox-table.md';
const { claimOldRow } = await codeOf<{
  claimOldRow(client: DynamoDBDocumentClient, tableName: string, id: string): Promise<boolean>;
}>(page, 'src/claim-old-row.ts');
const { moveOldRows } = await codeOf<{
  moveOldRows(
    client: DynamoDBDocumentClient,
    outbox: Outbox,
    tableName: string,
    since: number,
  ): Promise<number>;
}>(page, 'src/move-old-rows.ts');
const points = await codeOf<{ newPoints: Handler; oldPoints: Handler }>(page, 'src/points.ts');

const SINCE = 1_767_225_600_000;
const row = (id: string, createdAt = SINCE) => ({
  id,
  orderId: id,
  totalCents: 42,
  status: 'PENDING',
  createdAt,
});

/** A write without its condition, and so without the rule. */
const unconditional = ({ Update, ...action }: TransactAction): TransactAction =>
  Update === undefined
    ? action
    : { Update: { ...Update, ConditionExpression: 'attribute_exists(#status) OR #status = :pending' } };

/** The old table and the Mailroom, and what the old publisher has published. */
async function setUp(...rows: Item[]) {
  const aws = createMeteredAws([
    { name: 'outbox', keys: ['id'] },
    { name: 'Mailroom', keys: ['PK', 'SK'] },
  ]);
  const client = DynamoDBDocumentClient.from(new DynamoDBClient(aws.client));
  for (const Item of rows) await dynamoTable({ client, tableName: 'outbox' }).write({ Put: { Item } });
  const published: Item[] = [];

  /** One poll of the old publisher: as many have it, with the claim of the page. */
  async function publishOld(claim: typeof claimOldRow, turn: Turn): Promise<void> {
    const pending = { ExpressionAttributeValues: { ':pending': 'PENDING' } };
    const scan = new ScanCommand({
      TableName: 'outbox',
      FilterExpression: '#status = :pending',
      ExpressionAttributeNames: { '#status': 'status' },
      ...pending,
    });
    const { Items = [] } = await turn(() => client.send(scan));
    for (const { status, createdAt, ...message } of Items) {
      if (!(await turn(() => claim(client, 'outbox', message.id)))) continue;
      await turn(async () => published.push(message));
      const mark = new UpdateCommand({
        TableName: 'outbox',
        Key: { id: message.id },
        UpdateExpression: 'SET #status = :sent',
        ExpressionAttributeNames: { '#status': 'status' },
        ExpressionAttributeValues: { ':sent': 'SENT' },
      });
      await turn(() => client.send(mark));
    }
  }

  /** Moves the rows, with a turn before each call. */
  function move(turn: Turn = (call) => call(), isConditional = true): Promise<number> {
    const table = dynamoTable({ client, tableName: 'Mailroom' });
    const outbox = createOutbox({
      config: producerConfig(),
      table: {
        ...table,
        transact: (actions, ...rest) =>
          turn(() => table.transact(isConditional ? actions : actions.map(unconditional), ...rest)),
      },
    });
    const turned = {
      ...client,
      config: client.config,
      send: (command: ScanCommand) => turn(() => client.send(command)),
    };
    return moveOldRows(
      Object.setPrototypeOf(turned, DynamoDBDocumentClient.prototype),
      outbox,
      'outbox',
      SINCE,
    );
  }

  const events = () => aws.items('Mailroom').filter(({ SK }) => String(SK).startsWith('EVENT#'));
  return { aws, client, published, publishOld, move, events };
}

/** Every order of two programs: a row is published by one of them. */
async function race(claim: typeof claimOldRow, isConditional = true): Promise<number> {
  return crashSchedules(async () => {
    const { published, publishOld, move, events } = await setUp(row('1'));
    return {
      programs: [(turn) => publishOld(claim, turn), async (turn) => void (await move(turn, isConditional))],
      check: async () => {
        await publishOld(claim, (call) => call());
        await move();
        const old = new Set(published.map(({ id }) => id)).size;
        if (old + events().length !== 1) throw new Error(`${old} by the old, ${events().length} by Mailroom`);
      },
    };
  }, 1);
}

test('an old row is published by the old publisher or by Mailroom, in every order of their calls, whatever crashes', async () => {
  expect(await race(claimOldRow)).toBeGreaterThan(50);
});

test('without the claim, a row is published by both', async () => {
  await expect(race(async () => true)).rejects.toThrow('1 by the old, 1 by Mailroom');
});

test('without the condition of the move, a row is published by both', async () => {
  await expect(race(claimOldRow, false)).rejects.toThrow('1 by the old, 1 by Mailroom');
});

test('rows from before the claims stay with the old publisher, and a moved event has the time of its row', async () => {
  const { move, events, aws } = await setUp(row('1', SINCE - 1), row('2'), row('3', SINCE + 1));
  expect(await move()).toBe(2);
  expect(await move()).toBe(0);
  expect(aws.items('outbox').map(({ publisher }) => publisher)).toEqual([undefined, 'mailroom', 'mailroom']);
  const times = events().map(({ envelope }) => JSON.parse(envelope).occurredAt);
  expect(times.toSorted()).toEqual([SINCE, SINCE + 1]);
});

test('a message that the old publisher repeats is absorbed, and both ways do the same work', async () => {
  const clock = manualClock();
  const table = memoryTable({ clock });
  const queue = memoryQueue({ clock });
  const parts = { table, queue, clock, telemetry: memoryTelemetry() };
  const consume = createConsumer({ ...parts, config: consumerConfig(), handlers: [points.oldPoints] });
  for (const id of ['1', '1', '2']) queue.send({ id, orderId: '7', totalCents: 21 });
  await queue.deliver(consume);
  expect(queue.messages()).toEqual([]);
  expect(table.item({ PK: 'POINTS#7', SK: 'POINTS' })).toMatchObject({ points: 42 });
});
