import { describe, expect, test, vi } from 'vitest';
import { leased } from '../../../lambdas/runtime/consume/handler.ts';
import { PoisonMessage } from '../../../lambdas/runtime/errors.ts';
import type { Envelope } from '../../../lambdas/runtime/event.ts';
import { effectKey, inboxKey } from '../../../lambdas/runtime/rows.ts';
import { lambdaContext } from '../../../lambdas/runtime/testing.ts';
import { bench, runThrough, ThingHappened } from '../../support/runtime-bench.ts';
import { body, CONSUMER, consumer, envelope, inboxRow, type Parts, pointer, send } from './consumer-rig.ts';

/** Writes attributes over a message's row. */
const overwrite = (parts: Parts, event: Envelope, change: object) =>
  parts.memory.write({ Put: { Item: { ...inboxRow(parts, event), ...change } } });

describe('a lease', () => {
  test('never lasts longer than the function of its worker', async () => {
    const parts = bench();
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

  test('has a fencing token that no other has', async () => {
    const parts = bench();
    const fences = new Set<unknown>();
    const event = send(parts);
    const handler = leased(ThingHappened, async () => {
      fences.add(inboxRow(parts, event)?.fence);
      if (fences.size < 3) throw new Error('again');
    });
    await consumer(parts, [handler], parts.table, { maxAttempts: 5 }).drain();
    expect(fences.size).toBe(3);
  });

  test('that somebody else takes over first is theirs', async () => {
    const handle = vi.fn();
    const parts = bench();
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

describe('a worker whose message somebody else holds', () => {
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
    const parts = bench();
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

  test('has not completed it because the row still bears its fencing token', async () => {
    const parts = bench();
    const event = send(parts);
    const handler = leased(ThingHappened, () => overwrite(parts, event, { status: 'FAILED' }));
    const { deliver } = consumer(parts, [handler]);
    await expect(deliver()).resolves.toMatchObject({ failed: [expect.any(String)] });
    expect(inboxRow(parts, event)).toMatchObject({ status: 'FAILED' });
    expect(parts.telemetry.counted('MessagesProcessed')).toBe(0);
  });

  test('does not take for its own what the other has completed', async () => {
    const parts = bench();
    const event = send(parts);
    const handler = leased(ThingHappened, () =>
      overwrite(parts, event, { status: 'PROCESSED', fence: 'other' }),
    );
    await consumer(parts, [handler]).deliver();
    expect(parts.telemetry.counted('MessagesProcessed')).toBe(0);
    expect(parts.telemetry.counted('FenceRefused')).toBe(1);
    expect(parts.queue.messages()).toEqual([]); // a duplicate
  });

  test.each([
    ['IN_PROGRESS', {}],
    ['COMPLETED', { result: '"theirs"' }],
  ])('does not finish an effect that is %s under the other’s fencing token', async (status, more) => {
    const parts = bench();
    const event = send(parts);
    const key = effectKey(CONSUMER, event.eventId, 'charge');
    const theirs = { ...key, schema: 1, status, fence: 'other', endsBy: 1, startedAt: 1, ...more };
    const codes: unknown[] = [];
    const handler = leased(ThingHappened, async (_event, ctx) => {
      const charged = ctx.once('charge', async () => {
        await parts.memory.write({ Put: { Item: theirs } });
        return 'ours';
      });
      await charged.catch((error: { code: string }) => codes.push(error.code));
    });
    await consumer(parts, [handler]).deliver();
    expect(codes).toEqual(['FENCE_LOST']);
    expect(parts.memory.item(key)).toMatchObject(theirs);
  });
});

describe('an effect', () => {
  test('is stored also when the table fails for a moment', async () => {
    const parts = bench();
    const event = send(parts);
    const charge = vi.fn(async () => 'charged');
    let tries = 0;
    const write: typeof parts.memory.write = async (wanted) => {
      if (wanted.Update?.UpdateExpression?.includes('completedAt')) tries += 1;
      if (tries === 1 || tries === 2) throw Object.assign(new Error('slow'), { name: 'ThrottlingException' });
      return parts.memory.write(wanted);
    };
    const handler = leased(ThingHappened, (_event, ctx) => ctx.once('charge', charge));
    await consumer(parts, [handler], { ...parts.memory, write }).deliver();
    expect(charge).toHaveBeenCalledTimes(1);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', attempts: 1 });
  });

  test('that is completed is not run again, however long ago its function was stopped', async () => {
    const parts = bench();
    const event = send(parts);
    const charge = vi.fn(async () => 'charged');
    const handler = leased(ThingHappened, async (_event, ctx) => {
      await ctx.once('charge', charge);
      if (ctx.attempt === 1) throw new Error('later step failed');
    });
    const { deliver } = consumer(parts, [handler]);
    await deliver();
    await parts.clock.advance(3_600_000);
    await deliver();
    expect(charge).toHaveBeenCalledTimes(1);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', attempts: 2 });
  });
});

describe('a message', () => {
  test('of which SQS does not say how often it was received counts on its attempts', async () => {
    const parts = bench();
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

  test('that nobody can read is rejected also when a worker that could has died with it', async () => {
    const parts = bench();
    const event = send(parts, { type: 'Unheard' });
    const row = { schema: 1, status: 'PROCESSING', fence: 'dead', attempts: 1, leaseUntil: 1, endsBy: 1 };
    await parts.memory.write({ Put: { Item: { ...inboxKey(CONSUMER, event.eventId), ...row } } });
    await consumer(parts, [leased(ThingHappened, async () => {})]).drain();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'REJECTED', reason: 'UNKNOWN_EVENT_TYPE' });
    expect(pointer(parts, event)).toBeDefined();
    expect(parts.queue.deadLetters()).toHaveLength(1);
  });

  test('that nobody can read is rejected under every id under which it comes', async () => {
    const parts = bench();
    const event = send(parts, { type: 'Unheard' });
    const { drain } = consumer(parts, [leased(ThingHappened, async () => {})]);
    await drain();
    parts.queue.redrive();
    await drain();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'REJECTED' });
    expect(inboxRow(parts, event)?.rejectedIds).toHaveProperty('size', 2);
    expect(parts.queue.deadLetters()).toHaveLength(1);
  });

  test('that was rejected is let in by one redrive only', async () => {
    const parts = bench();
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

  test('that was rejected is not run under its old id while its redrive has failed', async () => {
    const parts = bench();
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
