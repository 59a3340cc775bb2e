import { describe, expect, test } from 'vitest';
import { PoisonMessage, RetryLater } from '../../../../lambdas/runtime/base/errors.ts';
import { createSourceHandler } from '../../../../lambdas/runtime/sources/source-handler.ts';
import { lambdaContext } from '../../../../testing/index.ts';
import { counting, gate, sourceRig } from './source-rig.ts';

type Rig = ReturnType<typeof sourceRig>;

const base64 = (text: string) => Buffer.from(text).toString('base64');

/** Kinesis: a partition key per body. */
const kinesis = (...bodies: readonly (readonly [key: string, body: string])[]) => ({
  Records: bodies.map(([partitionKey, body], index) => ({
    eventSource: 'aws:kinesis',
    eventID: `shardId-000000000006:4959${index}`,
    eventSourceARN: 'arn:aws:kinesis:eu-west-1:123456789012:stream/orders',
    kinesis: {
      partitionKey,
      data: base64(body),
      sequenceNumber: `4959${index}`,
      approximateArrivalTimestamp: 1_767_225_600.5,
    },
  })),
});

/** Kafka: the bodies of each partition. */
const kafka = (eventSource: string, partitions: Readonly<Record<string, readonly string[]>>) => ({
  eventSource,
  records: Object.fromEntries(
    Object.entries(partitions).map(([name, bodies]) => [
      name,
      bodies.map((body, index) => ({
        topic: 'orders',
        partition: Number(name.split('-')[1]),
        offset: 10 + index,
        timestamp: 1_767_225_600_000,
        value: base64(body),
        headers: [{ source: [...Buffer.from('things')] }],
      })),
    ]),
  ),
});

const rabbit = (...bodies: readonly string[]) => ({
  eventSource: 'aws:rmq',
  rmqMessagesByQueue: {
    'payments::/': bodies.map((body, index) => ({
      basicProperties: { messageId: `m${index}`, headers: null },
      redelivered: false,
      data: base64(body),
    })),
  },
});

/** A handler that treats each event by its number: 1 is done, 2 is retried, 3 is rejected. */
const byNumber = () =>
  counting(async ({ data }) => {
    const { n } = data as { n: number };
    if (n === 2) throw new RetryLater(60_000);
    if (n === 3) throw new PoisonMessage('no');
  });

function handlerOn(parts: Rig, { handler } = byNumber(), partialFailures = true) {
  const kept: unknown[] = [];
  const handle = createSourceHandler({
    inbox: parts.inbox,
    handler,
    deadLetter: async (letter) => kept.push(letter),
    partialFailures,
    clock: parts.clock,
  });
  const { clock } = parts;
  return {
    kept,
    invoke: (event: unknown, timeoutMs = 60_000) =>
      parts.through(handle(event, lambdaContext({ clock, timeoutMs }))),
  };
}

const text = async (parts: Rig, n: number) => JSON.stringify(await parts.envelope(n));

describe('Kinesis', () => {
  test('reports only the first record that is not done; others of its key wait, those of other keys run', async () => {
    const parts = sourceRig();
    const { handler, events } = byNumber();
    const { invoke } = handlerOn(parts, { handler, events });
    const bodies = [
      ['a', await text(parts, 1)],
      ['b', await text(parts, 2)],
      ['b', await text(parts, 1)],
      ['c', await text(parts, 1)],
      ['d', await text(parts, 2)],
    ] as const;
    expect(await invoke(kinesis(...bodies))).toEqual({ batchItemFailures: [{ itemIdentifier: '49591' }] });
    expect(events.map(({ data }) => data)).toEqual([{ n: 1 }, { n: 2 }, { n: 1 }, { n: 2 }]);
  });

  test('keeps a rejected record with its position, and does not hold back the shard', async () => {
    const parts = sourceRig();
    const { invoke, kept } = handlerOn(parts);
    const batch = kinesis(['a', 'x'], ['a', await text(parts, 3)], ['a', await text(parts, 1)]);
    expect(await invoke(batch)).toEqual({ batchItemFailures: [] });
    expect(kept).toMatchObject([
      {
        id: 'worker/orders/shardId-000000000006:49590',
        reason: { code: 'UNREADABLE_MESSAGE' },
        message: batch.Records[0],
      },
      { id: 'worker/orders/shardId-000000000006:49591', reason: { code: 'POISON_MESSAGE' } },
    ]);
  });

  test('the whole batch fails unless its mapping reports partial failures', async () => {
    const parts = sourceRig();
    const { invoke } = handlerOn(parts, byNumber(), false);
    const batch = kinesis(['a', await text(parts, 1)], ['b', await text(parts, 2)]);
    await expect(invoke(batch)).rejects.toMatchObject({
      code: 'BATCH_RETRIED',
      message: expect.stringContaining('1 of the 2 messages'),
    });
    expect(await invoke(kinesis(['a', await text(parts, 1)]))).toEqual({ batchItemFailures: [] });
  });
});

describe.each(['aws:kafka', 'SelfManagedKafka'])('%s', (source) => {
  test('reports every record that is not done, so that those behind a retry are not lost', async () => {
    const parts = sourceRig();
    const { invoke } = handlerOn(parts);
    const batch = kafka(source, {
      'orders-0': [await text(parts, 1), await text(parts, 2), await text(parts, 1)],
      'orders-1': [await text(parts, 1)],
    });
    expect(await invoke(batch)).toEqual({
      batchItemFailures: [
        { itemIdentifier: { 'topic-partition': 'orders-0', offset: 11 } },
        { itemIdentifier: { 'topic-partition': 'orders-0', offset: 12 } },
      ],
    });
  });

  test('throws without partial failures, and what is done is a duplicate in the repeated batch', async () => {
    const parts = sourceRig();
    const { handler, events } = byNumber();
    const { invoke } = handlerOn(parts, { handler, events }, false);
    const batch = kafka(source, { 'orders-0': [await text(parts, 1), await text(parts, 2)] });
    await expect(invoke(batch)).rejects.toMatchObject({ code: 'BATCH_RETRIED' });
    await expect(invoke(batch)).rejects.toMatchObject({ code: 'BATCH_RETRIED' });
    expect(events).toHaveLength(2);
    expect(parts.telemetry.counted('MessagesDuplicate')).toBe(1);
  });
});

describe('RabbitMQ of Amazon MQ', () => {
  test('fails as a whole, whatever the mapping reports; a rejected message is kept', async () => {
    const parts = sourceRig();
    const { invoke, kept } = handlerOn(parts);
    await expect(invoke(rabbit(await text(parts, 1), await text(parts, 2)))).rejects.toMatchObject({
      code: 'BATCH_RETRIED',
    });
    expect(await invoke(rabbit(await text(parts, 1), 'x'))).toEqual({ batchItemFailures: [] });
    expect(kept).toMatchObject([{ id: 'worker/m1/0' }]);
  });
});

test('a batch that fails is held until its first retry is due, for at most ten seconds and the time of the function', async () => {
  const parts = sourceRig();
  const held = async (afterMs: number, timeoutMs: number) => {
    const { invoke } = handlerOn(
      parts,
      counting(async () => Promise.reject(new RetryLater(afterMs))),
    );
    const began = parts.clock.now();
    await invoke(kinesis(['a', await text(parts, 1)]), timeoutMs);
    return parts.clock.now() - began;
  };
  expect(await held(3_000, 60_000)).toBeLessThan(4_000);
  expect(await held(3_000, 60_000)).toBeGreaterThanOrEqual(3_000);
  expect(await held(600_000, 60_000)).toBeGreaterThanOrEqual(10_000);
  expect(await held(600_000, 60_000)).toBeLessThan(11_000);
  expect(await held(600_000, 6_000)).toBeLessThanOrEqual(4_100);
});

test('a message is not begun when its function has too little time left', async () => {
  const parts = sourceRig();
  const { handler, events } = counting();
  const { invoke } = handlerOn(parts, { handler, events });
  const batch = kinesis(['a', await text(parts, 1)]);
  expect(await invoke(batch, 1_500)).toEqual({ batchItemFailures: [{ itemIdentifier: '49590' }] });
  expect(events).toEqual([]);
});

test('ten messages run at a time', async () => {
  const parts = sourceRig();
  const { opened, open } = gate();
  const { handler, events } = counting(() => opened);
  const bodies = await Promise.all(
    Array.from({ length: 12 }, async (_, n) => [String(n), await text(parts, n)] as const),
  );
  const { invoke } = handlerOn(parts, { handler, events });
  const answer = invoke(kinesis(...bodies));
  await parts.idle();
  expect(events).toHaveLength(10);
  open();
  expect(await answer).toEqual({ batchItemFailures: [] });
  expect(events).toHaveLength(12);
});

test.each([
  [{ Records: [{ eventSource: 'aws:sqs' }] }, 'aws:sqs'],
  [{ eventSource: 'aws:mq' }, 'aws:mq'],
  [undefined, 'undefined'],
  [{}, 'undefined'],
])('refuses %j, which is another source', async (event, named) => {
  const { invoke } = handlerOn(sourceRig());
  await expect(invoke(event)).rejects.toMatchObject({
    code: 'BAD_ARGUMENT',
    message: expect.stringContaining(named),
  });
});

test('refuses handlers that cannot be used when the function starts', () => {
  const { handler } = counting();
  const make = () =>
    createSourceHandler({
      inbox: sourceRig().inbox,
      handler: [handler, handler],
      deadLetter: async () => {},
    });
  expect(make).toThrow(expect.objectContaining({ code: 'BAD_CONSUMER' }));
});

test('a tombstone of Kafka is done', async () => {
  const parts = sourceRig();
  const { invoke, kept } = handlerOn(parts);
  const { records, eventSource } = kafka('aws:kafka', { 'orders-0': ['x', await text(parts, 1)] });
  const [first, second] = records['orders-0'] ?? [];
  for (const value of [null, undefined]) {
    const batch = { eventSource, records: { 'orders-0': [{ ...first, value }, second] } };
    expect(await invoke(batch)).toEqual({ batchItemFailures: [] });
  }
  expect(kept).toEqual([]);
  expect(parts.telemetry.counted('MessagesSkipped')).toBe(2);
});
