import { describe, expect, test, vi } from 'vitest';
import { leased } from '../../../../lambdas/runtime/consume/handler.ts';
import type { StoredEffect } from '../../../../lambdas/runtime/store/rows.ts';
import { rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { consumer, inboxRow, leaveEffect, type Parts, send, storedEffect } from './consumer-rig.ts';

describe('an effect', () => {
  test('does not expire when its message could not be completed', async () => {
    const parts = rig();
    const event = send(parts);
    const handler = leased(ThingHappened, async (_event, ctx) => {
      await ctx.once('charge', async () => 'charged');
      await parts.memory.write({ Put: { Item: { ...inboxRow(parts, event), fence: 'other' } } });
    });
    await consumer(parts, [handler]).deliver();
    expect(storedEffect(parts, event)).toMatchObject({ status: 'COMPLETED' });
    expect(inboxRow(parts, event)).not.toHaveProperty('expiresAt');
  });

  test('is stored as long as the table recovers before its function ends', async () => {
    const parts = rig();
    const event = send(parts);
    const charge = vi.fn(async () => 'charged');
    const recoversAt = parts.clock.now() + 20_000;
    const write: typeof parts.memory.write = async (wanted) => {
      const stores = wanted.Update?.UpdateExpression?.includes('completedAt');
      if (stores && parts.clock.now() < recoversAt)
        throw Object.assign(new Error('slow'), { name: 'ThrottlingException' });
      return parts.memory.write(wanted);
    };
    const handler = leased(ThingHappened, (_event, ctx) => ctx.once('charge', charge));
    await consumer(parts, [handler], { ...parts.memory, write }).deliver();
    expect(charge).toHaveBeenCalledTimes(1);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', attempts: 1 });
  });

  test('storing an effect ends before its function does, and counts no attempt', async () => {
    const parts = rig();
    const event = send(parts);
    let tries = 0;
    const write: typeof parts.memory.write = async (wanted) => {
      if (!wanted.Update?.UpdateExpression?.includes('completedAt')) return parts.memory.write(wanted);
      tries += 1;
      throw Object.assign(new Error('slow'), { name: 'ThrottlingException' });
    };
    const startedAt = parts.clock.now();
    const handler = leased(ThingHappened, (_event, ctx) => ctx.once('charge', async () => 'charged'));
    await consumer(parts, [handler], { ...parts.memory, write }).deliver(30_000);
    expect(parts.clock.now() - startedAt).toBeLessThan(30_000);
    // In 27 s, with pauses of half a second to a second.
    expect(tries).toBeGreaterThan(25);
    expect(tries).toBeLessThan(60);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'FAILED', attempts: 0 });
    expect(storedEffect(parts, event)).toMatchObject({ status: 'IN_PROGRESS' });
  });

  test('an effect that an earlier attempt completed is refused a second time in the same run', async () => {
    const parts = rig();
    const event = send(parts);
    await leaveEffect(parts, event, { status: 'COMPLETED', result: '"charged"' });
    const handler = leased(ThingHappened, async (_event, ctx) => {
      await ctx.once('charge', async () => 'first');
      await expect(ctx.once('charge', async () => 'second')).rejects.toMatchObject({
        code: 'EFFECT_REPEATED',
      });
    });
    await consumer(parts, [handler]).deliver();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
  });

  test('an effect that the claim finds completed costs no write', async () => {
    const parts = rig();
    const event = send(parts);
    await leaveEffect(parts, event, { status: 'COMPLETED', result: '"charged"' });
    const written: string[] = [];
    const write: typeof parts.memory.write = async (wanted) => {
      written.push(wanted.Update?.UpdateExpression ?? '');
      return parts.memory.write(wanted);
    };
    const handler = leased(ThingHappened, (_event, ctx) => ctx.once('charge', async () => 'again'));
    await consumer(parts, [handler], { ...parts.memory, write }).deliver();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', result: '"charged"' });
    expect(written.filter((update) => update.includes('effects.'))).toEqual([]);
  });

  test('an effect that was completed after the claim does not run, and returns its stored result', async () => {
    const parts = rig();
    const event = send(parts);
    const charge = vi.fn(async () => 'charged again');
    const handler = leased(ThingHappened, async (_event, ctx) => {
      await leaveEffect(parts, event, { status: 'COMPLETED', result: '"charged"' }); // a result that was stored late
      return ctx.once('charge', charge);
    });
    await consumer(parts, [handler]).deliver();
    expect(charge).not.toHaveBeenCalled();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', result: '"charged"' });
  });

  test('an effect that returned nothing returns undefined on a retry', async () => {
    const parts = rig();
    send(parts);
    const results: unknown[] = [];
    const handler = leased(ThingHappened, async (_event, ctx) => {
      results.push(await ctx.once('mail', async () => {}));
      if (ctx.attempt === 1) throw new Error('later step failed');
    });
    await consumer(parts, [handler]).drain();
    expect(results).toEqual([undefined, undefined]);
  });

  test('with a result of 4 KB is stored', async () => {
    const parts = rig();
    const event = send(parts);
    const result = 'x'.repeat(4_094); // and two quotes
    const handler = leased(
      ThingHappened,
      async (_event, ctx) => void (await ctx.once('charge', async () => result)),
    );
    await consumer(parts, [handler]).deliver();
    expect(storedEffect(parts, event)).toMatchObject({ status: 'COMPLETED', result: `"${result}"` });
  });

  test('does not run again once completed, however long ago its function was stopped', async () => {
    const parts = rig();
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

  test.each([
    ['IN_PROGRESS under the fencing token of another worker', { status: 'IN_PROGRESS', fence: 'other' }],
    ['COMPLETED under the fencing token of another worker', { status: 'COMPLETED', fence: 'other' }],
    ['IN_PROGRESS by another call', { status: 'IN_PROGRESS', run: 2 }],
    ['COMPLETED by another call', { status: 'COMPLETED', run: 2 }],
    ['RELEASED', { status: 'RELEASED' }],
  ])('is not finished when it is %s', async (_what, change) => {
    const parts = rig();
    const event = send(parts);
    let theirs: Partial<StoredEffect> = {};
    const codes: unknown[] = [];
    const handler = leased(ThingHappened, async (_event, ctx) => {
      const charged = ctx.once('charge', async () => {
        theirs = { ...storedEffect(parts, event), result: '"theirs"', ...(change as Partial<StoredEffect>) };
        await leaveEffect(parts, event, theirs);
        return 'ours';
      });
      await charged.catch((error: { code: string }) => codes.push(error.code));
    });
    await consumer(parts, [handler]).deliver();
    expect(theirs).toMatchObject(change);
    expect(codes).toEqual(['FENCE_LOST']);
    expect(storedEffect(parts, event)).toEqual(theirs);
  });

  test("an effect that ends after TTL has deleted its message's row does not create the row again", async () => {
    const parts = rig();
    const event = send(parts);
    const codes: unknown[] = [];
    const handler = leased(ThingHappened, async (_event, ctx) => {
      const charged = ctx.once('charge', async () => {
        const { PK, SK } = inboxRow(parts, event) ?? fail();
        await parts.memory.write({ Delete: { Key: { PK, SK } } });
      });
      await charged.catch((error: { code: string }) => codes.push(error.code));
    });
    await consumer(parts, [handler]).deliver();
    expect(codes).toEqual(['FENCE_LOST']);
    expect(inboxRow(parts, event)).toBeUndefined();
  });
});

describe('an effect that fails', () => {
  /** Delivers a message whose effect fails, on a table that does something before it is released. */
  async function failed(beforeRelease: (parts: Parts) => Promise<unknown>) {
    const parts = rig();
    const event = send(parts);
    const write: typeof parts.memory.write = async (wanted) => {
      if (wanted.Update?.ExpressionAttributeValues?.[':finished'] === 'RELEASED') await beforeRelease(parts);
      return parts.memory.write(wanted);
    };
    let left: StoredEffect | undefined;
    const handler = leased(ThingHappened, async (_event, ctx) => {
      const charge = ctx.once('charge', async () => Promise.reject(new Error('bank answered 500')));
      await charge.catch((error: unknown) => {
        left = storedEffect(parts, event);
        throw error;
      });
    });
    await consumer(parts, [handler], { ...parts.memory, write }).deliver();
    return { parts, event, left };
  }

  test('is released before its handler continues', async () => {
    const { left } = await failed(({ clock }) => clock.sleep(500));
    expect(left).toMatchObject({ status: 'RELEASED' });
  });

  test("fails its handler with the provider's error although it cannot be released, which is logged", async () => {
    const { parts, event, left } = await failed(async () => {
      throw Object.assign(new Error('slow'), { name: 'ThrottlingException' });
    });
    expect(left).toMatchObject({ status: 'IN_PROGRESS' });
    expect(inboxRow(parts, event)).toMatchObject({
      status: 'FAILED',
      attempts: 1,
      lastError: 'bank answered 500',
    });
    expect(parts.telemetry.lines()).toContainEqual(
      expect.objectContaining({
        level: 'warn',
        message: 'A failed effect could not be released',
        extra: expect.objectContaining({ effect: 'charge' }),
      }),
    );
  });
});

function fail(): never {
  throw new Error('There is no row');
}
