import { describe, expect, test, vi } from 'vitest';
import { leased } from '../../../../lambdas/runtime/consume/handler.ts';
import { errorCode, PoisonMessage } from '../../../../lambdas/runtime/errors.ts';
import type { Item } from '../../../../lambdas/runtime/store/table.ts';
import { rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { consumer, domainRow, inboxRow, leaveEffect, send, storedEffect } from './consumer-rig.ts';

describe('a side effect', () => {
  test('runs under a stable key, and not again once its result is stored', async () => {
    const parts = rig();
    const keys: string[] = [];
    const results: unknown[] = [];
    const event = send(parts);
    const { drain } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        const charged = await ctx.once('charge', async (key) => {
          keys.push(key);
          return { id: 'c1', at: new Date(0) };
        });
        results.push(charged);
        if (ctx.attempt < 3) throw new Error('later step failed');
        await ctx.commit({ writes: [domainRow] });
      }),
    ]);
    await drain();
    expect(keys).toEqual([`worker:${event.eventId}:charge`]);
    expect(results).toEqual(Array(3).fill({ id: 'c1', at: '1970-01-01T00:00:00.000Z' }));
    expect(storedEffect(parts, event)).toMatchObject({ status: 'COMPLETED' });
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', expiresAt: expect.any(Number) });
  });

  test('an effect name that has succeeded in this run is refused, and one that failed may be tried again', async () => {
    const parts = rig();
    const event = send(parts);
    const charged: number[] = [];
    const { deliver } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        await ctx.once('fee', async () => Promise.reject(new Error('closed'))).catch(() => {});
        await ctx.once('fee', async () => charged.push(0));
        for (const item of [1, 2]) await ctx.once('charge', async () => charged.push(item));
      }),
    ]);
    await deliver();
    expect(charged).toEqual([0, 1]);
    expect(inboxRow(parts, event)).toMatchObject({
      status: 'FAILED',
      lastError: expect.stringContaining('effect "charge" has already run in this handler'),
    });
  });

  test('a failed effect is released and runs again under the same key', async () => {
    const parts = rig();
    const keys: string[] = [];
    const event = send(parts);
    const { drain, deliver } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        await ctx.once('charge', async (key) => {
          keys.push(key);
          if (keys.length === 1) throw new Error('bank answered 500');
        });
      }),
    ]);
    await deliver();
    expect(storedEffect(parts, event)).toMatchObject({ status: 'RELEASED' });
    expect(inboxRow(parts, event)).toMatchObject({ status: 'FAILED', lastError: 'bank answered 500' });
    await drain();
    expect(keys).toHaveLength(2);
    expect(new Set(keys).size).toBe(1);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
  });

  test('an effect that may still run elsewhere returns the attempt and waits, whatever the handler does with the error', async () => {
    const parts = rig();
    const event = send(parts);
    const endsBy = parts.clock.now() + 20_000;
    await leaveEffect(parts, event, { endsBy });
    const ran = vi.fn(async () => 'ok');
    const codes: string[] = [];
    const { deliver, drain } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        try {
          await ctx.once('charge', ran);
        } catch (error) {
          codes.push((error as { code: string }).code);
          await ctx.commit({ writes: [domainRow] }); // a handler that swallows the error gets no further
        }
      }),
    ]);
    await deliver();
    expect(codes).toEqual(['EFFECT_IN_PROGRESS']);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'FAILED', attempts: 0 });
    expect(parts.queue.messages()[0]?.visibleAt).toBeGreaterThan(endsBy);
    expect(ran).not.toHaveBeenCalled();
    await drain();
    expect(ran).toHaveBeenCalledTimes(1);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', attempts: 1 });
  });

  test('keeps its result when the message is taken over, failed, rejected and redriven', async () => {
    const parts = rig();
    const event = send(parts);
    await leaveEffect(parts, event, { status: 'COMPLETED', result: '"charged"' });
    const taken = { status: 'PROCESSING', leaseUntil: parts.clock.now() - 1, endsBy: parts.clock.now() - 1 };
    await parts.memory.write({ Put: { Item: { ...inboxRow(parts, event), ...taken } as Item } });
    const seen: unknown[] = [];
    const charge = vi.fn(async () => 'again');
    const fails = leased(ThingHappened, async (_event, ctx) => {
      seen.push(await ctx.once('charge', charge));
      throw seen.length < 3 ? new Error('later step failed') : new PoisonMessage('no such customer');
    });
    await consumer(parts, [fails]).drain();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'REJECTED' });
    parts.queue.redrive();
    const works = leased(
      ThingHappened,
      async (_event, ctx) => void seen.push(await ctx.once('charge', charge)),
    );
    await consumer(parts, [works]).drain();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
    expect(seen).toEqual(Array(4).fill('charged'));
    expect(charge).not.toHaveBeenCalled();
  });

  test('number 65 of a message is refused before it runs, and the message is rejected', async () => {
    const parts = rig();
    const event = send(parts);
    const ran = vi.fn(async () => 'ok');
    const handler = leased(ThingHappened, async (_event, ctx) => {
      for (let nth = 1; nth <= 64; nth += 1) await ctx.once(`mail-${nth}`, ran);
      await ctx.once('constructor', ran); // every object has a property of this name
    });
    await consumer(parts, [handler]).drain();
    expect(ran).toHaveBeenCalledTimes(64);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'REJECTED', reason: 'TOO_MANY_EFFECTS' });
  });

  test('among 64 of a message can still be tried again', async () => {
    const parts = rig();
    const event = send(parts);
    let tries = 0;
    const handler = leased(ThingHappened, async (_event, ctx) => {
      for (let nth = 1; nth <= 63; nth += 1) await ctx.once(`mail-${nth}`, async () => 'sent');
      await ctx.once('charge', async () => {
        tries += 1;
        if (tries === 1) throw new Error('bank answered 500');
      });
    });
    await consumer(parts, [handler]).drain();
    expect(tries).toBe(2);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', attempts: 2 });
  });

  test('may have the name of a property that every object has', async () => {
    const parts = rig();
    const event = send(parts);
    const ran = vi.fn(async () => 'ok');
    const handler = leased(ThingHappened, async (_event, ctx) => void (await ctx.once('constructor', ran)));
    await consumer(parts, [handler]).deliver();
    expect(ran).toHaveBeenCalledTimes(1);
    expect(inboxRow(parts, event)).toMatchObject({
      status: 'PROCESSED',
      effects: { constructor: { status: 'COMPLETED' } },
    });
  });

  test('an effect starts and completes in spite of a transaction on its row', async () => {
    const parts = rig();
    const event = send(parts);
    const ran = vi.fn(async () => 'ok');
    const met = new Set<string>();
    const write: typeof parts.memory.write = async (wanted) => {
      const what = wanted.Update?.UpdateExpression ?? '';
      if (!what.includes('effects.') || met.has(what)) return parts.memory.write(wanted);
      met.add(what);
      throw Object.assign(new Error('in progress'), { name: 'TransactionConflictException' });
    };
    const handler = leased(ThingHappened, async (_event, ctx) => void (await ctx.once('charge', ran)));
    await consumer(parts, [handler], { ...parts.memory, write }).deliver();
    expect(met.size).toBe(2);
    expect(ran).toHaveBeenCalledTimes(1);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', attempts: 1 });
  });

  test.each([
    ['without a time', { endsBy: 'soon' as never }],
    ['with another status', { status: 'PAUSED' as never }],
  ])('whose entry was written by hand, %s, rejects the message', async (_what, entry) => {
    const parts = rig();
    const event = send(parts);
    await leaveEffect(parts, event, entry);
    const ran = vi.fn(async () => 'ok');
    const handler = leased(ThingHappened, async (_event, ctx) => void (await ctx.once('charge', ran)));
    await consumer(parts, [handler]).drain();
    expect(ran).not.toHaveBeenCalled();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'REJECTED', reason: 'EFFECT_UNREADABLE' });
  });

  test.each([null, 7, {}, { mail: null }])(
    'an effect that is not requested does not change a message whose effects are %j',
    async (effects) => {
      const parts = rig();
      const event = send(parts);
      await leaveEffect(parts, event, {});
      await parts.memory.write({ Put: { Item: { ...inboxRow(parts, event), effects } as Item } });
      await consumer(parts, [leased(ThingHappened, async () => {})]).deliver();
      expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
      expect(parts.telemetry.counted('TableFailures')).toBe(0);
    },
  );

  test.each([
    ['another worker holds the message', { fence: 'other' }],
    ['its message was rejected', { status: 'REJECTED' }],
    ['its message was resolved', { status: 'PROCESSED' }],
    ['its attempt was recorded as failed', { status: 'FAILED' }],
  ])('is not begun once %s', async (_what, change) => {
    const parts = rig();
    const event = send(parts);
    const ran = vi.fn();
    const { deliver } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        await parts.memory.write({ Put: { Item: { ...inboxRow(parts, event), ...change } as Item } });
        await ctx.once('charge', ran);
      }),
    ]);
    await deliver();
    expect(ran).not.toHaveBeenCalled();
    expect(storedEffect(parts, event)).toBeUndefined();
    expect(inboxRow(parts, event)).toMatchObject(change);
  });

  test.each([
    ['is no JSON', () => ({ n: 1n }), 'EFFECT_RESULT_NOT_STORABLE'],
    ['is too long', () => 'x'.repeat(4_095), 'EFFECT_RESULT_NOT_STORABLE'],
    ['has too many bytes', () => 'é'.repeat(2_048), 'EFFECT_RESULT_NOT_STORABLE'],
  ])('whose result %s is not run again and again: the message is rejected', async (_what, result, reason) => {
    const parts = rig();
    const event = send(parts);
    const ran = vi.fn(async () => result());
    await consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => void (await ctx.once('charge', ran))),
    ]).drain();
    expect(ran).toHaveBeenCalledTimes(1);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'REJECTED', reason });
    expect(storedEffect(parts, event)).toMatchObject({ status: 'IN_PROGRESS' }); // it has happened: not released as failed
  });

  test('whose result cannot be stored does not happen again for a handler that catches the error and calls it again', async () => {
    const parts = rig();
    send(parts);
    const ran = vi.fn(async () => 'x'.repeat(5_000));
    const refused: unknown[] = [];
    await consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        for (let call = 0; call < 3; call += 1) {
          await ctx.once('charge', ran).catch((error: unknown) => refused.push(errorCode(error)));
        }
      }),
    ]).deliver();
    expect(ran).toHaveBeenCalledTimes(1);
    expect(refused).toEqual(['EFFECT_RESULT_NOT_STORABLE', 'EFFECT_REPEATED', 'EFFECT_REPEATED']);
  });

  test('whose result is not JSON is reported without names of its members', async () => {
    const parts = rig();
    const event = send(parts);
    const circular: Record<string, unknown> = {};
    circular.secretName = circular;
    await consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => void (await ctx.once('charge', async () => circular))),
    ]).deliver();
    expect(inboxRow(parts, event)).toMatchObject({ reason: 'EFFECT_RESULT_NOT_STORABLE' });
    expect(inboxRow(parts, event)?.lastError).toContain('is not JSON (TypeError)');
  });

  test.each([
    ['a', 'ran'],
    ['Ship-1.of_2', 'ran'],
    ['7', 'ran'],
    ['x'.repeat(64), 'ran'],
    ['x'.repeat(65), 'BAD_EFFECT_NAME'],
    ['', 'BAD_EFFECT_NAME'],
    ['-a', 'BAD_EFFECT_NAME'],
    ['.a', 'BAD_EFFECT_NAME'],
    ['_a', 'BAD_EFFECT_NAME'],
    ['a/b', 'BAD_EFFECT_NAME'],
    [' a', 'BAD_EFFECT_NAME'],
    ['a ', 'BAD_EFFECT_NAME'],
    ['größe', 'BAD_EFFECT_NAME'],
  ])('an effect of the name "%s" has the outcome %s', async (name, outcome) => {
    const parts = rig();
    send(parts);
    const outcomes: string[] = [];
    await consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        outcomes.push(await ctx.once(name, async () => 'ran').catch(errorCode));
      }),
    ]).deliver();
    expect(outcomes).toEqual([outcome]);
  });

  test('has a name that can be a key, and is not run beside itself', async () => {
    const parts = rig();
    send(parts);
    const codes: string[] = [];
    const note = (error: { code: string }) => void codes.push(error.code);
    await consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        await ctx.once('no name', async () => 1).catch(note);
        await Promise.all([
          ctx.once('a', async () => 1).catch(note),
          ctx.once('a', async () => 1).catch(note),
        ]);
      }),
    ]).deliver();
    expect(codes).toEqual(['BAD_EFFECT_NAME', 'EFFECT_RUNNING']);
  });
});
