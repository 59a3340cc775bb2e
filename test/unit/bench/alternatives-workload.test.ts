import { describe, expect, it } from 'vitest';
import { bookInvocation, bookSend, deliver } from '../../../bench/alternatives/queue-delivery.ts';
import {
  DOMAIN,
  envelope,
  handledWrite,
  handlerFaults,
  isRetried,
  orderRow,
  payload,
  retriedOrders,
  type Workload,
} from '../../../bench/alternatives/workload.ts';
import { createMeteredAws } from '../../../bench/aws/metered-aws.ts';
import { isEventId } from '../../../lambdas/runtime/store/event-id.ts';
import { itemBytes } from '../../../lambdas/runtime/store/item-size.ts';

const WORKLOAD: Workload = { events: 1_000, payloadBytes: 200, consumers: 1, retries: 10, batchSize: 100 };

describe('the workload', () => {
  it.each([200, 1_024, 4_096])('has payloads of exactly %d bytes', (bytes) => {
    expect(Buffer.byteLength(JSON.stringify(payload(123, bytes)))).toBe(bytes);
  });

  it('has rows of one write unit', () => {
    const { Key, ExpressionAttributeValues } = handledWrite('consumer-1', 'order-00000001');
    expect(itemBytes(orderRow(99_999_999))).toBeLessThan(1_024);
    expect(itemBytes({ ...Key, ...ExpressionAttributeValues })).toBeLessThan(1_000);
  });

  it('has a different event id for every event', () => {
    const ids = Array.from({ length: 1_000 }, (_, index) => envelope(index, 200).eventId);
    expect(new Set(ids).size).toBe(1_000);
    expect(ids.every(isEventId)).toBe(true);
  });

  it('spreads the events that fail once over all of them', () => {
    const retried = Array.from({ length: 1_000 }, (_, index) => index).filter((index) =>
      isRetried(WORKLOAD, index),
    );
    expect(retried).toEqual([99, 199, 299, 399, 499, 599, 699, 799, 899, 999]);
  });

  it('lets each of them fail once for each consumer', () => {
    const mayFail = handlerFaults(WORKLOAD);
    const [order = ''] = retriedOrders(WORKLOAD);
    for (const consumer of ['a', 'b']) {
      expect(() => mayFail(consumer, order)).toThrow(`${consumer} fails once at ${order}`);
      mayFail(consumer, order);
    }
    mayFail('a', 'order-00000000');
  });
});

describe('the queue', () => {
  const booked = (aws: ReturnType<typeof createMeteredAws>) =>
    aws.requests().map(({ operation, billed }) => `${operation} ${billed}`);

  it('bills every started 64 KB, and ten messages together', () => {
    const aws = createMeteredAws([DOMAIN]);
    const bodies = Array.from({ length: 11 }, () => 'x'.repeat(6_600)); // ten take 66,000 bytes: two requests
    bookSend(aws, 'x'.repeat(65_537));
    bookInvocation(aws, bodies, 11);
    expect(booked(aws)).toEqual([
      'SendMessage 2',
      'ReceiveMessage 2',
      'ReceiveMessage 1',
      'Invoke 1',
      'DeleteMessageBatch 1',
      'DeleteMessageBatch 1',
    ]);
  });

  it('redelivers failed messages, and stops at one that keeps failing', async () => {
    const aws = createMeteredAws([DOMAIN]);
    const calls: string[] = [];
    await deliver(aws, ['a', 'b', 'c'], 2, async (body) => {
      calls.push(body);
      if (calls.length === 1) throw new Error('once');
    });
    expect(calls).toEqual(['a', 'b', 'c', 'a']);

    const poison = () => Promise.reject(new Error('permanently'));
    await expect(deliver(aws, ['a'], 1, poison)).rejects.toThrow('permanently');
  });
});
