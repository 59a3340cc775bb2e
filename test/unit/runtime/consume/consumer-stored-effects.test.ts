import { describe, expect, test, vi } from 'vitest';
import { leased } from '../../../../lambdas/runtime/consume/handler.ts';
import type { StoredEffect } from '../../../../lambdas/runtime/store/rows.ts';
import { rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { consumer, inboxRow, leaveEffect, send, storedEffect } from './consumer-rig.ts';

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

  test('that cannot be stored is given up before its function ends, and counts no attempt', async () => {
    const parts = rig();
    const event = send(parts);
    const write: typeof parts.memory.write = async (wanted) => {
      if (wanted.Update?.UpdateExpression?.includes('completedAt'))
        throw Object.assign(new Error('slow'), { name: 'ThrottlingException' });
      return parts.memory.write(wanted);
    };
    const startedAt = parts.clock.now();
    const handler = leased(ThingHappened, (_event, ctx) => ctx.once('charge', async () => 'charged'));
    await consumer(parts, [handler], { ...parts.memory, write }).deliver(30_000);
    expect(parts.clock.now() - startedAt).toBeLessThan(30_000);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'FAILED', attempts: 0 });
    expect(storedEffect(parts, event)).toMatchObject({ status: 'IN_PROGRESS' });
  });

  test('that the claim finds completed costs no write', async () => {
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

  test('that ends after TTL has deleted the row of its message does not bring the row back', async () => {
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

function fail(): never {
  throw new Error('There is no row');
}
