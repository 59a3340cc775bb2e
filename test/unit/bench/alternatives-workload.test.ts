import { describe, expect, it } from 'vitest';
import { bookInvocation, bookSend, deliver } from '../../../bench/alternatives/queue-delivery.ts';
import { DOMAIN } from '../../../bench/alternatives/workload.ts';
import { createMeteredAws } from '../../../bench/aws/metered-aws.ts';

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
