import { describe, expect, test, vi } from 'vitest';
import { leased } from '../../../../lambdas/runtime/consume/handler.ts';
import { effectKey, inboxKey } from '../../../../lambdas/runtime/store/rows.ts';
import { rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { CONSUMER, consumer, domainRow, inboxRow, send } from './consumer-rig.ts';

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
    const row = parts.memory.item(effectKey(CONSUMER, event.eventId, 'charge'));
    expect(row).toMatchObject({ status: 'COMPLETED', schema: 1, expiresAt: expect.any(Number) });
  });

  test('of a name that has succeeded in this run is refused, and one that failed may be tried again', async () => {
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

  test('that fails is released and run again under the same key', async () => {
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
    expect(parts.memory.item(effectKey(CONSUMER, event.eventId, 'charge'))).toMatchObject({
      status: 'RELEASED',
    });
    expect(inboxRow(parts, event)).toMatchObject({ status: 'FAILED', lastError: 'bank answered 500' });
    await drain();
    expect(keys).toHaveLength(2);
    expect(new Set(keys).size).toBe(1);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
  });

  test('that may still run elsewhere gives the attempt back and waits, whatever the handler makes of it', async () => {
    const parts = rig();
    const event = send(parts);
    const endsBy = parts.clock.now() + 20_000;
    await parts.memory.write({
      Put: {
        Item: {
          ...effectKey(CONSUMER, event.eventId, 'charge'),
          schema: 1,
          status: 'IN_PROGRESS',
          fence: 'dead',
          endsBy,
          startedAt: 0,
        },
      },
    });
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

  test('that is left of a message whose own row has expired does not expire while it runs', async () => {
    const parts = rig();
    const event = send(parts);
    const effect = effectKey(CONSUMER, event.eventId, 'charge');
    const left = { status: 'RELEASED', fence: 'old', endsBy: 0, startedAt: 0, expiresAt: 1 };
    await parts.memory.write({ Put: { Item: { ...effect, schema: 1, ...left } } });
    const during: unknown[] = [];
    const charge = leased(ThingHappened, async (_event, ctx) => {
      await ctx.once('charge', async () => during.push(parts.memory.item(effect)));
    });
    await consumer(parts, [charge]).deliver();
    expect(during).toEqual([expect.not.objectContaining({ expiresAt: expect.anything() })]);
    expect(during).toMatchObject([{ status: 'IN_PROGRESS' }]);
  });

  test('of a worker that died may expire too, also where the one that took over did not come to it', async () => {
    const parts = rig();
    const event = send(parts);
    const effect = effectKey(CONSUMER, event.eventId, 'charge');
    const past = { fence: 'dead', endsBy: parts.clock.now() - 1 };
    await parts.memory.write({
      Put: { Item: { ...effect, schema: 1, status: 'COMPLETED', ...past, startedAt: 0 } },
    });
    await parts.memory.write({
      Put: {
        Item: {
          ...inboxKey(CONSUMER, event.eventId),
          schema: 1,
          status: 'PROCESSING',
          ...past,
          attempts: 1,
          leaseUntil: past.endsBy,
        },
      },
    });
    await consumer(parts, [leased(ThingHappened, async () => {})]).deliver();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', attempts: 1 });
    expect(parts.memory.item(effect)).toHaveProperty('expiresAt');
  });

  test('is not begun by a worker that lost its lease', async () => {
    const parts = rig();
    const event = send(parts);
    const ran = vi.fn();
    const { deliver } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        await parts.memory.write({ Put: { Item: { ...inboxRow(parts, event), fence: 'other' } } });
        await ctx.once('charge', ran);
      }),
    ]);
    await deliver();
    expect(ran).not.toHaveBeenCalled();
    expect(parts.memory.item(effectKey(CONSUMER, event.eventId, 'charge'))).toBeUndefined();
  });

  test.each([
    ['is no JSON', () => ({ n: 1n }), 'EFFECT_RESULT_NOT_STORABLE'],
    ['is too long', () => 'x'.repeat(200_000), 'EFFECT_RESULT_NOT_STORABLE'],
  ])('whose result %s is not run again and again: the message is rejected', async (_what, result, reason) => {
    const parts = rig();
    const event = send(parts);
    const ran = vi.fn(async () => result());
    await consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => void (await ctx.once('charge', ran))),
    ]).drain();
    expect(ran).toHaveBeenCalledTimes(1);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'REJECTED', reason });
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
