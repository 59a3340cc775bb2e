import { describe, expect, test, vi } from 'vitest';
import { leased } from '../../../../lambdas/runtime/consume/handler.ts';
import { effectKey } from '../../../../lambdas/runtime/store/rows.ts';
import type { Item } from '../../../../lambdas/runtime/store/table.ts';
import { rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { CONSUMER, consumer, inboxRow, send } from './consumer-rig.ts';

describe('an effect', () => {
  test('does not expire when its message could not be completed', async () => {
    const parts = rig();
    const event = send(parts);
    const handler = leased(ThingHappened, async (_event, ctx) => {
      await ctx.once('charge', async () => 'charged');
      await parts.memory.write({ Put: { Item: { ...inboxRow(parts, event), fence: 'other' } } });
    });
    await consumer(parts, [handler]).deliver();
    const effect = parts.memory.item(effectKey(CONSUMER, event.eventId, 'charge'));
    expect(effect).toMatchObject({ status: 'COMPLETED' });
    expect(effect).not.toHaveProperty('expiresAt');
  });

  test('is stored even if the table fails for a moment', async () => {
    const parts = rig();
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
    const key = effectKey(CONSUMER, event.eventId, 'charge');
    let theirs: Item = {};
    const codes: unknown[] = [];
    const handler = leased(ThingHappened, async (_event, ctx) => {
      const charged = ctx.once('charge', async () => {
        theirs = { ...parts.memory.item(key), result: '"theirs"', ...change };
        await parts.memory.write({ Put: { Item: theirs } });
        return 'ours';
      });
      await charged.catch((error: { code: string }) => codes.push(error.code));
    });
    await consumer(parts, [handler]).deliver();
    expect(theirs).toMatchObject({ schema: 1, ...change });
    expect(codes).toEqual(['FENCE_LOST']);
    expect(parts.memory.item(key)).toMatchObject(theirs);
  });
});
