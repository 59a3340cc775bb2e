import { describe, expect, test } from 'vitest';
import { TransactionCancelled } from '../../../../lambdas/runtime/base/errors.ts';
import { createRelayStream } from '../../../../lambdas/runtime/relay/relay-stream.ts';
import { createSweepPass } from '../../../../lambdas/runtime/relay/relay-sweep.ts';
import {
  discardDead,
  dropStaleDead,
  markResent,
  requeueDead,
} from '../../../../lambdas/runtime/store/dynamo/outbox-operator.ts';
import {
  eventIdShard,
  eventIdTime,
  minuteOf,
  outboxKeyOf,
} from '../../../../lambdas/runtime/store/event-id.ts';
import { deadKey, unsettledKey } from '../../../../lambdas/runtime/store/keys.ts';
import { recordOperation } from '../../../../lambdas/runtime/store/operation-record.ts';
import { SCHEMA } from '../../../../lambdas/runtime/store/row-schema.ts';
import { relayConfig, rig, runThrough } from '../../../support/runtime-rig.ts';
import { staleReads } from '../../../support/stale-reads.ts';

type Parts = ReturnType<typeof rig>;

/** An event that the bus refused for what it is. */
async function deadEvent(refuses: () => boolean) {
  const parts = rig({
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
  const relay = createSweepPass({ ...parts, config: relayConfig });
  return runThrough(parts.clock, relay(parts.clock.now() + 60_000));
}

describe('to mark an event as sent again', () => {
  test('creates no row for an event whose row has expired', async () => {
    const parts = rig();
    const [event] = await parts.outbox.commit({ events: [parts.happened(1)] });
    const key = outboxKeyOf(event?.eventId ?? '');
    const marked = await markResent(parts, event?.eventId ?? '');
    expect(marked).toMatchObject({ resentAt: parts.clock.now() });
    await parts.memory.write({ Delete: { Key: { ...key } } });
    expect(await markResent(parts, event?.eventId ?? '')).toBeUndefined();
    expect(parts.memory.item(key)).toBeUndefined();
  });
});

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
    expect(memory.item(outboxKeyOf(eventId))).not.toHaveProperty('deadAt');
    expect(memory.item(deadKey(shard, eventId))).toBeUndefined();
    expect(memory.item(unsettledKey(shard, minuteOf(eventIdTime(eventId))))).toBeDefined();

    await parts.clock.advance(60_000);
    await sweep(parts);
    expect(publishedIds()).toEqual([eventId]);
  });

  test('stores the operator, time and reason of a requeue, and a second one changes nothing', async () => {
    const parts = await deadEvent(() => true);
    const { memory, eventId, clock } = parts;
    const note = { by: 'ada', reason: 'the bus is back' };
    expect(await requeueDead(parts, eventId, note)).toBe(true);
    const requeued = memory.item(outboxKeyOf(eventId));
    expect(requeued).toMatchObject({
      status: 'PENDING',
      requeuedBy: 'ada',
      requeuedAt: clock.now(),
      requeuedReason: 'the bus is back',
      leaseUntil: clock.now(), // due at once
    });
    await clock.advance(1_000);
    expect(await requeueDead(parts, eventId, { ...note, by: 'bob' })).toBe(false);
    expect(memory.item(outboxKeyOf(eventId))).toEqual(requeued);
  });

  test('makes its minute unsettled under a fresh token each time', async () => {
    const parts = await deadEvent(() => true);
    const { memory, eventId } = parts;
    const key = unsettledKey(eventIdShard(eventId), minuteOf(eventIdTime(eventId)));
    await requeueDead(parts, eventId);
    const first = memory.item(key);
    await parts.clock.advance(60_000);
    await sweep(parts);
    expect(await requeueDead(parts, eventId)).toBe(true);
    expect(memory.item(key)?.token).not.toBe(first?.token);
  });

  test('throws when the table throttles, because that is not a refusal', async () => {
    const parts = await deadEvent(() => true);
    const transact = async () => {
      throw new TransactionCancelled([{ code: 'ThrottlingError' }, { code: 'None' }, { code: 'None' }]);
    };
    const requeued = requeueDead({ ...parts, table: { ...parts.memory, transact } }, parts.eventId);
    await expect(requeued).rejects.toMatchObject({ code: 'TRANSACTION_CANCELLED' });
  });

  test('leaves an event that is not DEAD as it is', async () => {
    const parts = await deadEvent(() => false);
    const before = parts.memory.items();
    expect(await requeueDead(parts, parts.eventId)).toBe(false);
    expect(parts.memory.items()).toEqual(before);
    // Even if only a strongly consistent read finds it.
    expect(await requeueDead({ ...parts, table: staleReads(parts.memory) }, parts.eventId)).toBe(false);
  });

  test('says so when there is no such event, or no such id', async () => {
    const parts = rig();
    await expect(requeueDead(parts, '01a1fba6-4458-7a41-9c37-3f5d2b8e1101')).rejects.toMatchObject({
      code: 'NO_SUCH_EVENT',
    });
    await expect(requeueDead(parts, '42')).rejects.toMatchObject({ code: 'BAD_EVENT_ID' });
  });
});

describe('to discard a DEAD event', () => {
  const note = { by: 'ada', reason: 'a test order' };

  test('stores operator, time and reason, removes its pointer, and lets the row expire', async () => {
    const parts = await deadEvent(() => true);
    const { memory, eventId, clock } = parts;
    expect(await discardDead(parts, eventId, note)).toBe(true);
    const row = memory.item(outboxKeyOf(eventId));
    expect(row).toMatchObject({
      status: 'DISCARDED',
      discardedBy: 'ada',
      discardedAt: clock.now(),
      discardedReason: 'a test order',
      expiresAt: Math.ceil(clock.now() / 1_000) + 35 * 86_400,
    });
    expect(memory.item(deadKey(eventIdShard(eventId), eventId))).toBeUndefined();
    expect(await discardDead(parts, eventId, { ...note, by: 'bob' })).toBe(false);
    expect(memory.item(outboxKeyOf(eventId))).toEqual(row);
  });

  test('is permanent: neither sweep nor stream publishes it, and no requeue brings it back', async () => {
    let refuses = true;
    const parts = await deadEvent(() => refuses);
    const { memory, eventId, clock, publishedIds } = parts;
    const record = parts.streamEvent();
    await discardDead(parts, eventId, note);
    const row = memory.item(outboxKeyOf(eventId));

    refuses = false;
    await clock.advance(5 * 60_000);
    await sweep(parts);
    // The record of its birth, delivered late.
    await runThrough(clock, createRelayStream({ ...parts, config: relayConfig })(record));
    expect(await requeueDead(parts, eventId)).toBe(false);
    expect(publishedIds()).toEqual([]);
    expect(memory.item(outboxKeyOf(eventId))).toEqual(row);
  });

  test('does not take back what is being published: the event goes out once, and its row stays DISCARDED', async () => {
    const parts = rig();
    const [event] = await parts.outbox.commit({ events: [parts.happened(1)] });
    const eventId = event?.eventId ?? '';
    const key = outboxKeyOf(eventId);
    const bus: typeof parts.bus = {
      ...parts.bus,
      put: async (...call) => {
        const results = await parts.bus.put(...call);
        // Between the publish and its mark.
        await parts.memory.updateEach([{ key, set: { status: 'DEAD' }, when: { status: 'PENDING' } }]);
        await discardDead({ table: parts.memory, clock: parts.clock }, eventId, note);
        return results;
      },
    };
    await runThrough(
      parts.clock,
      createRelayStream({ ...parts, bus, config: relayConfig })(parts.streamEvent()),
    );
    expect(parts.publishedIds()).toEqual([eventId]);
    expect(parts.memory.item(key)).toMatchObject({ status: 'DISCARDED', discardedBy: 'ada' });
  });

  test('leaves an event that is not DEAD as it is, and says so when there is none', async () => {
    const parts = await deadEvent(() => false);
    const before = parts.memory.items();
    expect(await discardDead(parts, parts.eventId, note)).toBe(false);
    expect(parts.memory.items()).toEqual(before);
    await expect(discardDead(parts, '01a1fba6-4458-7a41-9c37-3f5d2b8e1101', note)).rejects.toMatchObject({
      code: 'NO_SUCH_EVENT',
    });
  });
});

test("operators' actions are recorded by month, in chronological order", async () => {
  const { memory, clock } = rig();
  const deps = { table: memory, clock };
  const note = { by: 'ada', reason: 'charged by phone' };
  await recordOperation(deps, { ...note, command: 'messages resolve', subject: 'payments 1' });
  await clock.advance(10);
  await recordOperation(deps, { ...note, command: 'messages resolve', subject: 'payments 2' });
  const { items } = await memory.query({ pk: 'OPERATIONS#2026-01' });
  expect(items).toMatchObject([
    { ...note, command: 'messages resolve', subject: 'payments 1', at: clock.now() - 10 },
    { ...note, subject: 'payments 2', at: clock.now(), expiresAt: expect.any(Number) },
  ]);
});

describe('the pointer of an event whose row is not DEAD', () => {
  const note = { by: 'ada', reason: 'its row was deleted by hand' };

  test('is removed by a discard, also if the event has no row', async () => {
    const { memory, eventId, ...parts } = await deadEvent(() => true);
    await memory.write({ Delete: { Key: { ...outboxKeyOf(eventId) } } });
    expect(await discardDead({ ...parts, table: memory }, eventId, note)).toBe(false);
    expect(memory.item(deadKey(eventIdShard(eventId), eventId))).toBeUndefined();
    await expect(discardDead({ ...parts, table: memory }, eventId, note)).rejects.toMatchObject({
      code: 'NO_SUCH_EVENT',
    });
  });

  test.each([
    ['the row is DEAD', { status: 'DEAD' }],
    ['the row has a newer schema', { status: 'PARKED', schema: SCHEMA + 1 }],
  ])('stays if %s', async (_when, row) => {
    const { memory, eventId } = await deadEvent(() => true);
    const key = outboxKeyOf(eventId);
    await memory.write({ Put: { Item: { ...memory.item(key), ...key, ...row } } });
    expect(await dropStaleDead({ table: memory }, eventId)).toMatchObject({ wasListed: true });
    expect(memory.item(deadKey(eventIdShard(eventId), eventId))).toBeDefined();
  });

  test('stays if the event becomes DEAD after its row was read', async () => {
    const { memory, eventId, clock } = await deadEvent(() => true);
    const key = outboxKeyOf(eventId);
    const pointerKey = deadKey(eventIdShard(eventId), eventId);
    const dead = memory.item(key);
    await memory.write({ Put: { Item: { ...dead, ...key, status: 'PENDING' } } });
    const get: typeof memory.get = async (...call) => {
      const item = await memory.get(...call);
      if (item?.status !== 'PENDING') return item;
      const deadAt = clock.now() + 1;
      await memory.write({ Put: { Item: { ...dead, ...key, deadAt } } });
      await memory.write({ Put: { Item: { ...memory.item(pointerKey), ...pointerKey, deadAt } } });
      return item;
    };
    await dropStaleDead({ table: { ...memory, get } }, eventId);
    expect(memory.item(pointerKey)).toMatchObject({ deadAt: clock.now() + 1 });
  });
});
