import { describe, expect, test } from 'vitest';
import { leased, transactional } from '../../lambdas/runtime/consume/handler.ts';
import { createConsumer } from '../../lambdas/runtime/sources/sqs/consumer.ts';
import { createOutbox } from '../../lambdas/runtime/store/dynamo/outbox.ts';
import type { TransactAction } from '../../lambdas/runtime/store/table.ts';
import { memoryQueue, memoryTable, producerConfig } from '../../testing/index.ts';
import { consumerConfig, rig, ThingHappened } from '../support/runtime-rig.ts';

/** What IAM denies to every service: the same actions are refused before they are sent. */
const FORBIDDEN: readonly (readonly [string, TransactAction])[] = [
  ['deletes an inbox row', { Delete: { Key: { PK: 'INBOX#worker#0', SK: 'MESSAGE' } } }],
  ['writes an inbox row', { Put: { Item: { PK: 'INBOX#x', SK: 'MESSAGE' } } }],
  [
    'updates an outbox row',
    { Update: { Key: { PK: 'OUTBOX#2026-11-23T10:00#00', SK: 'EVENT#1' }, UpdateExpression: 'SET a = :a' } },
  ],
  ['writes an outbox row that is not an entry', { Put: { Item: { PK: 'OUTBOX#1', SK: 'MINE' } } }],
  [
    'checks a pointer',
    { ConditionCheck: { Key: { PK: 'DEAD#1', SK: '1' }, ConditionExpression: 'attribute_exists(PK)' } },
  ],
  ['names the table itself', { Put: { TableName: 'Mailroom', Item: { PK: 'SWEEP', SK: 'STATE' } } }],
];

describe.each(FORBIDDEN)('a commit that %s', (_what, action) => {
  const kind = Object.keys(action)[0];
  const refused = {
    code: 'BAD_WRITE',
    message: expect.stringContaining(`(${kind}): the partition key begins`),
  };
  const own = { Put: { Item: { PK: 'THING#1', SK: 'THING' } } };

  test('the outbox refuses a reserved key and writes nothing', async () => {
    const { outbox, memory, happened } = rig();
    const commit = outbox.commit({ writes: [own, action], events: [happened(1)] });
    await expect(commit).rejects.toMatchObject(refused);
    expect(memory.items()).toEqual([]);
  });

  test('fails its message in a handler, whose delivery reports why', async () => {
    for (const handler of [
      leased(ThingHappened, async (_event, ctx) => ctx.commit({ writes: [own, action] })),
      transactional(ThingHappened, async () => ({ writes: [own, action] })),
    ]) {
      const parts = rig();
      const [envelope] = await parts.outbox.commit({ events: [parts.happened(1)] });
      const consume = createConsumer({ ...parts, config: consumerConfig, handlers: [handler] });
      const messageId = parts.queue.send({
        id: 'of-the-bus',
        source: 'things',
        'detail-type': 'ThingHappened',
        time: '2026-11-23T10:00:00Z',
        detail: envelope,
      });
      const delivery = await parts.queue.deliver(consume);
      expect(delivery).toMatchObject({ failed: [messageId], errors: { [messageId]: refused } });
      expect(parts.memory.item({ PK: 'THING#1', SK: 'THING' })).toBeUndefined();
    }
  });
});

test('a commit may write rows of another table under any key, and the entries of its own outbox', async () => {
  const table = memoryTable({ otherTables: { Orders: ['PK'] } });
  const outbox = createOutbox({ config: producerConfig({ service: 'things' }), table });
  const entries = await outbox.entries([ThingHappened.create({ aggregateId: '1', data: { n: 1 } })]);
  const external = { Put: { TableName: 'Orders', Item: { PK: 'INBOX#x' } } };
  await outbox.commit({ writes: [external, ...entries] });
  expect(table.items('Orders')).toEqual([{ PK: 'INBOX#x' }]);
  expect(table.items()).toHaveLength(1);
});

describe('a table in memory with domain keys', () => {
  const table = () => memoryTable({ domainKeys: ['THING#*', 'SETTINGS'] });
  const denied = { name: 'AccessDeniedException' };

  test('accepts its domain keys, and the rows of Mailroom', async () => {
    const memory = table();
    await memory.transact([
      { Put: { Item: { PK: 'THING#1', SK: 'a' } } },
      { Put: { Item: { PK: 'SETTINGS', SK: 'a' } } },
      {
        Update: {
          Key: { PK: 'INBOX#worker#0', SK: 'a' },
          UpdateExpression: 'SET a = :a',
          ExpressionAttributeValues: { ':a': 1 },
        },
      },
    ]);
    expect(memory.items()).toHaveLength(3);
  });

  test.each([
    ['puts another key', { Put: { Item: { PK: 'OTHER#1', SK: 'a' } } }],
    ['puts a key that only begins like a whole one', { Put: { Item: { PK: 'SETTINGS#1', SK: 'a' } } }],
    ['deletes an inbox row', { Delete: { Key: { PK: 'INBOX#worker#0', SK: 'a' } } }],
    ['replaces an inbox row', { Put: { Item: { PK: 'INBOX#worker#0', SK: 'a' } } }],
  ])('refuses a write that %s, alone and in a transaction', async (_what, action) => {
    const memory = table();
    await expect(memory.write(action)).rejects.toMatchObject(denied);
    await expect(
      memory.transact([{ Put: { Item: { PK: 'THING#1', SK: 'a' } } }, action]),
    ).rejects.toMatchObject(denied);
    expect(memory.items()).toEqual([]);
  });

  test('refuses reads and batches of updates outside of them', async () => {
    const memory = table();
    const key = { PK: 'OTHER#1', SK: 'a' };
    await expect(memory.get(key)).rejects.toMatchObject(denied);
    await expect(memory.getEach([key])).rejects.toMatchObject(denied);
    await expect(memory.query({ pk: key.PK })).rejects.toMatchObject(denied);
    await expect(memory.updateEach([{ key, set: { a: 1 }, when: {} }])).rejects.toMatchObject(denied);
  });
});

test('a producer with a named service may not publish an event of another one, also in tests', async () => {
  const event = ThingHappened.create({ aggregateId: '1', data: { n: 1 } });
  const outboxOf = (settings: Parameters<typeof producerConfig>[0]) =>
    createOutbox({ config: producerConfig(settings), table: memoryTable() });
  await expect(outboxOf({ service: 'billing' }).commit({ events: [event] })).rejects.toMatchObject({
    code: 'NOT_DECLARED',
    message: expect.stringContaining(
      'this function of billing publishes its own events. Only things may publish it',
    ),
  });
  await expect(
    outboxOf({ service: 'things', publishes: [] }).commit({ events: [event] }),
  ).rejects.toMatchObject({
    code: 'NOT_DECLARED',
  });
  await expect(outboxOf({ service: 'things' }).commit({ events: [event] })).resolves.toHaveLength(1);
  await expect(outboxOf({}).commit({ events: [event] })).resolves.toHaveLength(1);
});

test('a delivery reports the error of each failed message, and the answer for Lambda does not contain it', async () => {
  const parts = rig();
  const broken = new Error('the bank is closed');
  const failing = leased(ThingHappened, async () => {
    throw broken;
  });
  const consume = createConsumer({ ...parts, config: consumerConfig, handlers: [failing] });
  const [envelope] = await parts.outbox.commit({ events: [parts.happened(1)] });
  const queue = memoryQueue({ clock: parts.clock });
  const messageId = queue.send({ source: 'things', 'detail-type': 'ThingHappened', detail: envelope });
  let answer = '';
  const { failed, errors } = await queue.deliver(async (event, context) => {
    const response = await consume(event, context);
    answer = JSON.stringify(response);
    return response;
  });
  expect(failed).toEqual([messageId]);
  expect(errors).toEqual({ [messageId]: broken });
  expect(answer).toBe(`{"batchItemFailures":[{"itemIdentifier":"${messageId}"}]}`);
});
