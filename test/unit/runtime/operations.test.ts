import { describe, expect, test } from 'vitest';
import { createConsumer } from '../../../lambdas/runtime/consumer.ts';
import { eventIdShard, eventIdTime, minuteOf, outboxKeyOf } from '../../../lambdas/runtime/event-id.ts';
import { leased } from '../../../lambdas/runtime/handler.ts';
import { requeueDead, resolveMessage } from '../../../lambdas/runtime/operations.ts';
import { createRelaySweep } from '../../../lambdas/runtime/relay-sweep.ts';
import { deadKey, inboxKey, rejectedKey, unsettledKey } from '../../../lambdas/runtime/rows.ts';
import { eventBridgeMessage } from '../../../lambdas/runtime/testing.ts';
import {
  bench,
  consumerConfig,
  relayConfig,
  runThrough,
  ThingHappened,
} from '../../support/runtime-bench.ts';

type Parts = ReturnType<typeof bench>;

/** An event that the bus refused for what it is. */
async function deadEvent(refuses: () => boolean) {
  const parts = bench({
    bus: {
      failEntry: () => (refuses() ? { code: 'InvalidArgument', message: 'not like this' } : undefined),
    },
  });
  const [event] = await parts.outbox.commit({ events: [parts.happened(1)] });
  if (event === undefined) throw new Error('unreachable');
  await parts.clock.advance(150_000);
  await sweep(parts);
  return { ...parts, eventId: event.eventId };
}

function sweep(parts: Parts) {
  const relay = createRelaySweep({ ...parts, config: relayConfig });
  return runThrough(parts.clock, relay.pass(parts.clock.now() + 60_000));
}

describe('to requeue a DEAD event', () => {
  test('makes it PENDING, takes its pointer out and makes its minute unsettled, so that the next sweep publishes it', async () => {
    let refuses = true;
    const parts = await deadEvent(() => refuses);
    const { memory, eventId, publishedIds } = parts;
    const shard = eventIdShard(eventId);
    expect(memory.item(outboxKeyOf(eventId))).toMatchObject({ status: 'DEAD', attempts: 1 });

    refuses = false;
    await parts.clock.advance(2 * 1024 * 60_000); // long after every age of its minute
    await sweep(parts);
    expect(await requeueDead(parts, eventId)).toBe(true);
    expect(memory.item(outboxKeyOf(eventId))).toMatchObject({ status: 'PENDING', attempts: 0 });
    expect(memory.item(deadKey(shard, eventId))).toBeUndefined();
    expect(memory.item(unsettledKey(shard, minuteOf(eventIdTime(eventId))))).toBeDefined();

    await parts.clock.advance(60_000);
    await sweep(parts);
    expect(publishedIds()).toEqual([eventId]);
  });

  test('leaves an event that is not DEAD as it is', async () => {
    const parts = await deadEvent(() => false);
    const before = parts.memory.items();
    expect(await requeueDead(parts, parts.eventId)).toBe(false);
    expect(parts.memory.items()).toEqual(before);
  });

  test('says so when there is no such event, or no such id', async () => {
    const parts = bench();
    await expect(requeueDead(parts, '01a1fba6-4458-7a41-9c37-3f5d2b8e1101')).rejects.toMatchObject({
      code: 'NO_SUCH_EVENT',
    });
    await expect(requeueDead(parts, '42')).rejects.toMatchObject({ code: 'BAD_EVENT_ID' });
  });
});

describe('to resolve a message', () => {
  const resolution = { reason: 'charged by phone', by: 'ada', inboxRetentionDays: 35 };

  /** A message in the queue, and a consumer whose handler is counted. */
  async function message(handle: () => Promise<void>) {
    const parts = bench();
    const [event] = await parts.outbox.commit({ events: [parts.happened(1)] });
    if (event === undefined) throw new Error('unreachable');
    const row = parts.rows()[0];
    if (row === undefined) throw new Error('unreachable');
    const publishedAt = parts.clock.now();
    parts.queue.send(
      eventBridgeMessage({
        id: '1',
        publishedAt,
        source: row.source,
        detailType: row.type,
        detail: row.envelope,
      }),
    );
    const consume = createConsumer({
      ...parts,
      table: parts.memory,
      config: { ...consumerConfig, maxAttempts: 1 },
      handlers: [leased(ThingHappened, handle)],
    });
    const { consumer } = consumerConfig;
    const key = inboxKey(consumer, event.eventId);
    return {
      ...parts,
      row: () => parts.memory.item(key),
      pointer: () => parts.memory.item(rejectedKey(consumer, event.eventId)),
      deliver: () => runThrough(parts.clock, parts.queue.deliver(consume)),
      resolve: () =>
        resolveMessage(
          { table: parts.memory, clock: parts.clock },
          {
            ...resolution,
            consumer,
            eventId: event.eventId,
          },
        ),
    };
  }

  test('sets a rejected one PROCESSED, with who and why, and takes its pointer out', async () => {
    const { deliver, resolve, row, pointer } = await message(async () => {
      throw new Error('never');
    });
    await deliver();
    expect(row()).toMatchObject({ status: 'REJECTED' });
    expect(pointer()).toBeDefined();
    expect(await resolve()).toEqual({ status: 'resolved' });
    expect(row()).toMatchObject({
      status: 'PROCESSED',
      resolvedBy: 'ada',
      resolvedReason: 'charged by phone',
    });
    expect(row()).toHaveProperty('expiresAt');
    expect(pointer()).toBeUndefined();
    expect(await resolve()).toEqual({ status: 'processed' });
  });

  test('before it comes: its handler is never run', async () => {
    let runs = 0;
    const { deliver, resolve, queue } = await message(async () => {
      runs += 1;
    });
    expect(await resolve()).toEqual({ status: 'resolved' });
    await deliver();
    expect(runs).toBe(0);
    expect(queue.messages()).toEqual([]);
  });

  test('is refused while a worker holds it, and says until when', async () => {
    let verdict: unknown;
    const parts: Awaited<ReturnType<typeof message>> = await message(async () => {
      verdict = await parts.resolve();
    });
    const until = parts.clock.now() + consumerConfig.leaseMs;
    await parts.deliver();
    expect(verdict).toEqual({ status: 'leased', until });
    expect(parts.row()).toMatchObject({ status: 'PROCESSED' });
    expect(parts.row()).not.toHaveProperty('resolvedBy');
  });
});
