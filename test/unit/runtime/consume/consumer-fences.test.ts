import { describe, expect, test, vi } from 'vitest';
import { leased } from '../../../../lambdas/runtime/consume/handler.ts';
import { PoisonMessage } from '../../../../lambdas/runtime/errors.ts';
import type { Envelope } from '../../../../lambdas/runtime/event.ts';
import { inboxKey } from '../../../../lambdas/runtime/store/rows.ts';
import { lambdaContext } from '../../../../testing/index.ts';
import { rig, runThrough, ThingHappened } from '../../../support/runtime-rig.ts';
import { body, CONSUMER, consumer, envelope, inboxRow, type Parts, pointer, send } from './consumer-rig.ts';

/** Overwrites attributes of a message's row. */
const overwrite = (parts: Parts, event: Envelope, change: object) =>
  parts.memory.write({ Put: { Item: { ...inboxRow(parts, event), ...change } } });

describe('a lease', () => {
  test('never outlasts the function of its worker', async () => {
    const parts = rig();
    const leases: unknown[] = [];
    const event = send(parts);
    const endsBy = parts.clock.now() + 20_000;
    const handler = leased(ThingHappened, async () => {
      leases.push(inboxRow(parts, event)?.leaseUntil);
      await parts.clock.sleep(17_000);
      leases.push(inboxRow(parts, event)?.leaseUntil); // renewed
    });
    await consumer(parts, [handler], parts.table, { leaseMs: 30_000 }).deliver(20_000);
    expect(leases).toEqual([endsBy, endsBy]);
  });

  test('has a unique fencing token', async () => {
    const parts = rig();
    const fences = new Set<unknown>();
    const event = send(parts);
    const handler = leased(ThingHappened, async () => {
      fences.add(inboxRow(parts, event)?.fence);
      if (fences.size < 3) throw new Error('again');
    });
    await consumer(parts, [handler], parts.table, { maxAttempts: 5 }).drain();
    expect(fences.size).toBe(3);
  });

  test('a lease that another worker has taken over is not taken over again', async () => {
    const handle = vi.fn();
    const parts = rig();
    const event = send(parts);
    const row = { schema: 1, status: 'PROCESSING', fence: 'dead', attempts: 1, leaseUntil: 1, endsBy: 1 };
    await parts.memory.write({ Put: { Item: { ...inboxKey(CONSUMER, event.eventId), ...row } } });
    const taken = {
      fence: 'other',
      leaseUntil: parts.clock.now() + 60_000,
      endsBy: parts.clock.now() + 60_000,
    };
    let claims = 0;
    const write: typeof parts.memory.write = async (wanted) => {
      if (wanted.Update?.UpdateExpression?.includes('claimedAt')) claims += 1;
      if (claims === 2) await overwrite(parts, event, taken);
      return parts.memory.write(wanted);
    };
    await consumer(parts, [leased(ThingHappened, handle)], { ...parts.memory, write }).deliver();
    expect(handle).not.toHaveBeenCalled();
    expect(inboxRow(parts, event)).toMatchObject(taken);
  });
});

describe('a worker that has lost its message', () => {
  test.each<[string, () => void]>([
    ['returns', () => {}],
    [
      'throws',
      () => {
        throw new Error('too late');
      },
    ],
    [
      'throws PoisonMessage',
      () => {
        throw new PoisonMessage('too late');
      },
    ],
  ])('changes nothing when its handler %s', async (_what, end) => {
    const parts = rig();
    const event = send(parts);
    const handler = leased(ThingHappened, async () => {
      await overwrite(parts, event, { fence: 'other' });
      end();
    });
    const { deliver } = consumer(parts, [handler]);
    await expect(deliver()).resolves.toMatchObject({ failed: [expect.any(String)] });
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSING', fence: 'other' });
    expect(inboxRow(parts, event)).not.toHaveProperty('lastError');
    expect(pointer(parts, event)).toBeUndefined();
  });

  test('has not completed it, even if the row still has its fencing token', async () => {
    const parts = rig();
    const event = send(parts);
    const handler = leased(ThingHappened, () => overwrite(parts, event, { status: 'FAILED' }));
    const { deliver } = consumer(parts, [handler]);
    await expect(deliver()).resolves.toMatchObject({ failed: [expect.any(String)] });
    expect(inboxRow(parts, event)).toMatchObject({ status: 'FAILED' });
    expect(parts.telemetry.counted('MessagesProcessed')).toBe(0);
  });

  test('does not count the completion of another worker as its own', async () => {
    const parts = rig();
    const event = send(parts);
    const handler = leased(ThingHappened, () =>
      overwrite(parts, event, { status: 'PROCESSED', fence: 'other' }),
    );
    await consumer(parts, [handler]).deliver();
    expect(parts.telemetry.counted('MessagesProcessed')).toBe(0);
    expect(parts.telemetry.counted('FenceRefused')).toBe(1);
    expect(parts.queue.messages()).toEqual([]); // a duplicate
  });
});

describe('a message', () => {
  test('with an unknown receive count continues its attempts', async () => {
    const parts = rig();
    const event = send(parts);
    const attempts: number[] = [];
    const { handle } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        attempts.push(ctx.attempt);
        throw new Error('not now');
      }),
    ]);
    const [record] = parts.queue.receive();
    if (record === undefined) throw new Error('unreachable');
    const Records = [{ ...record, attributes: {} as typeof record.attributes }];
    for (const _ of [1, 2]) await runThrough(parts.clock, handle({ Records }, lambdaContext(parts)));
    expect(attempts).toEqual([1, 2]);
    expect(inboxRow(parts, event)).toMatchObject({ attempts: 2 });
  });

  test('an unreadable message is rejected even if its row has an expired lease', async () => {
    const parts = rig();
    const event = send(parts, { type: 'Unheard' });
    const row = { schema: 1, status: 'PROCESSING', fence: 'dead', attempts: 1, leaseUntil: 1, endsBy: 1 };
    await parts.memory.write({ Put: { Item: { ...inboxKey(CONSUMER, event.eventId), ...row } } });
    await consumer(parts, [leased(ThingHappened, async () => {})]).drain();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'REJECTED', reason: 'UNKNOWN_EVENT_TYPE' });
    expect(pointer(parts, event)).toBeDefined();
    expect(parts.queue.deadLetters()).toHaveLength(1);
  });

  test('an unreadable message is rejected under every SQS message id that it arrives with', async () => {
    const parts = rig();
    const event = send(parts, { type: 'Unheard' });
    const { drain } = consumer(parts, [leased(ThingHappened, async () => {})]);
    await drain();
    parts.queue.redrive();
    await drain();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'REJECTED' });
    expect(inboxRow(parts, event)?.rejectedIds).toHaveProperty('size', 2);
    expect(parts.queue.deadLetters()).toHaveLength(1);
  });

  test('a rejected message is readmitted by one redrive only', async () => {
    const parts = rig();
    const handle = vi.fn(async () => {
      throw new PoisonMessage('not like this');
    });
    const event = send(parts);
    await consumer(parts, [leased(ThingHappened, handle)]).drain();
    parts.queue.redrive();
    const held = { status: 'PROCESSING', fence: 'other', leaseUntil: parts.clock.now() + 60_000 };
    const transact: typeof parts.memory.transact = async (...call) => {
      await overwrite(parts, event, held);
      return parts.memory.transact(...call);
    };
    await consumer(parts, [leased(ThingHappened, handle)], { ...parts.memory, transact }).deliver();
    expect(handle).toHaveBeenCalledTimes(1);
    expect(inboxRow(parts, event)).toMatchObject(held);
  });

  test('a rejected message does not run under its old id after its redrive has failed', async () => {
    const parts = rig();
    const ran: string[] = [];
    const event = envelope(parts);
    const { handle } = consumer(parts, [
      leased(ThingHappened, async () => {
        ran.push('run');
        throw ran.length === 1 ? new PoisonMessage('not like this') : new Error('not now');
      }),
    ]);
    for (const _ of ['old', 'new']) parts.queue.send(body(event));
    const [old, redriven] = parts.queue.receive();
    for (const record of [old, redriven, old]) {
      if (record === undefined) throw new Error('unreachable');
      await runThrough(parts.clock, handle({ Records: [record] }, lambdaContext(parts)));
    }
    expect(ran).toHaveLength(2);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'FAILED', lastError: 'not now' });
  });
});
