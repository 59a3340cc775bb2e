import type { SQSBatchResponse, SQSEvent } from 'aws-lambda';
import { describe, expect, it } from 'vitest';
import { manualClock, memoryQueue } from '../../../testing/index.ts';

function setup(options = {}) {
  const clock = manualClock();
  return { clock, queue: memoryQueue({ clock, visibilityTimeoutMs: 10_000, ...options }) };
}

const failing = (...ids: readonly string[]): SQSBatchResponse => ({
  batchItemFailures: ids.map((itemIdentifier) => ({ itemIdentifier })),
});

describe('the queue in memory', () => {
  it('passes a handler the same event as Lambda', async () => {
    const { queue, clock } = setup({ name: 'payments' });
    const id = queue.send({ hello: 'world' });
    let seen: SQSEvent | undefined;
    await queue.deliver(async (event, context) => {
      seen = event;
      expect(context.getRemainingTimeInMillis()).toBe(30_000);
      return failing();
    });
    expect(seen?.Records[0]).toMatchObject({
      messageId: id,
      body: '{"hello":"world"}',
      eventSource: 'aws:sqs',
      eventSourceARN: 'arn:aws:sqs:us-east-1:000000000000:payments',
      attributes: { ApproximateReceiveCount: '1', SentTimestamp: String(clock.now()) },
    });
    expect(queue.messages()).toEqual([]);
  });

  it('keeps failed messages hidden, and redelivers them', async () => {
    const { queue, clock } = setup();
    const [good, bad] = [queue.send('good'), queue.send('bad')];
    expect(await queue.deliver(async () => failing(bad))).toEqual({ received: 2, failed: [bad] });
    expect(queue.messages().map(({ messageId }) => messageId)).toEqual([bad]);
    expect(good).not.toBe(bad);
    expect(await queue.deliver(async () => failing())).toEqual({ received: 0, failed: [] });
    await clock.advance(10_000);
    expect(await queue.deliver(async () => failing())).toEqual({ received: 1, failed: [] });
  });

  it.each([
    ['throws', () => Promise.reject(new Error('boom'))],
    ['names an unknown message', () => Promise.resolve(failing('unknown'))],
    ['names a message by nothing', () => Promise.resolve(failing(''))],
  ])('takes the whole batch for failed when the handler %s', async (_, handler) => {
    const { queue } = setup();
    queue.send('a');
    queue.send('b');
    expect((await queue.deliver(handler)).failed).toHaveLength(2);
    expect(queue.messages()).toHaveLength(2);
  });

  it('moves a message to the dead letters at the receive after the last, and back with a new id', async () => {
    const { queue, clock } = setup({ maxReceiveCount: 2 });
    const id = queue.send('poison');
    for (let n = 0; n < 2; n += 1) {
      const [record] = queue.receive();
      await queue.changeVisibility(record?.receiptHandle ?? '', 0);
    }
    expect(queue.deadLetters()).toEqual([]);
    expect(queue.receive()).toEqual([]);
    expect(queue.deadLetters()).toMatchObject([{ messageId: id, receiveCount: 2 }]);
    await clock.advance(60_000);
    expect(queue.redrive()).toBe(1);
    const [message] = queue.messages();
    expect(message).toMatchObject({ body: 'poison', receiveCount: 0, sentAt: clock.now() });
    expect(message?.messageId).not.toBe(id);
  });

  it('honors only the latest receipt', async () => {
    const { queue, clock } = setup();
    queue.send('a');
    const [first] = queue.receive();
    await clock.advance(10_000);
    const stale = first?.receiptHandle ?? '';
    await expect(queue.changeVisibility(stale, 5)).rejects.toMatchObject({ name: 'MessageNotInflight' });
    const [second] = queue.receive();
    queue.delete(stale);
    expect(queue.messages()).toHaveLength(1);
    queue.delete(second?.receiptHandle ?? '');
    expect(queue.messages()).toEqual([]);
  });

  it('hides a message for 12 hours after its receive at most', async () => {
    const { queue, clock } = setup({ visibilityTimeoutMs: 43_200_000 });
    queue.send('a');
    const [record] = queue.receive();
    await clock.advance(1_000);
    await expect(queue.changeVisibility(record?.receiptHandle ?? '', 43_200)).rejects.toThrow(
      'beyond the limit',
    );
    await queue.changeVisibility(record?.receiptHandle ?? '', 43_199);
  });

  it('takes 1 MiB and not a byte more', () => {
    const { queue } = setup();
    queue.send('x'.repeat(1024 * 1024));
    expect(() => queue.send('x'.repeat(1024 * 1024 + 1))).toThrow('1048577 bytes');
  });
});

it('a body that JSON would change is not sent', () => {
  const queue = memoryQueue();
  expect(() => queue.send({ detail: { lines: [new Map()] } })).toThrow(
    'The body cannot be written as JSON: body.detail.lines.0 is a Map. Use Object.fromEntries(map).',
  );
  expect(queue.messages()).toEqual([]);
});
