import { describe, expect, test, vi } from 'vitest';
import { CLOCK_SKEW_MS } from '../../../../lambdas/runtime/clock.ts';
import { type LeasedContext, leased } from '../../../../lambdas/runtime/consume/handler.ts';
import type { StoredEffect } from '../../../../lambdas/runtime/store/rows.ts';
import type { Item, Table, Update } from '../../../../lambdas/runtime/store/table.ts';
import type { MemoryTable } from '../../../../testing/index.ts';
import { rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { consumer, domainRow, inboxRow, leaveEffect, send, storedEffect } from './consumer-rig.ts';

const charges = (charge: () => Promise<unknown>) =>
  leased(ThingHappened, async (_event, ctx) => void (await ctx.once('charge', charge)));

const timeout = () => Object.assign(new Error('No answer came in time'), { name: 'TimeoutError' });

const refuse = async () => Promise.reject(new Error('The provider is busy'));

/** The status that an update gives an effect. */
function statusSet({ UpdateExpression = '', ExpressionAttributeValues: values = {} }: Update): unknown {
  if (!UpdateExpression.includes('effects.#effect')) return undefined;
  return values[':finished'] ?? (values[':entry'] as StoredEffect).status;
}

/** A table on which one kind of write times out, and takes effect only when the test says so. */
function abandoning(status: 'RELEASED' | 'IN_PROGRESS', tries: number) {
  const late: (() => Promise<unknown>)[] = [];
  const abandons = (update: Update) => late.length < tries && statusSet(update) === status;
  const wrap = (memory: MemoryTable): Table => ({
    ...memory,
    write: async (write) => {
      if (write.Update === undefined || !abandons(write.Update)) return memory.write(write);
      late.push(() => memory.write(write));
      throw timeout();
    },
  });
  const land = async () => {
    for (const write of late) await write().catch(() => {});
  };
  return { wrap, land };
}

describe('an effect that another worker may still be running', () => {
  test.each([
    ['waits while clocks may differ', -CLOCK_SKEW_MS, 0],
    ['runs once clocks cannot differ that much', -CLOCK_SKEW_MS - 1, 1],
  ])('%s', async (_what, endedMs, runs) => {
    const parts = rig();
    const event = send(parts);
    await leaveEffect(parts, event, { endsBy: parts.clock.now() + endedMs });
    const charge = vi.fn(async () => 'charged');
    await consumer(parts, [charges(charge)]).deliver();
    expect(charge).toHaveBeenCalledTimes(runs);
  });

  test('brings its message back when it may be started, and not before', async () => {
    const parts = rig();
    const event = send(parts);
    const endsBy = parts.clock.now() + 20_000;
    await leaveEffect(parts, event, { endsBy });
    const charge = vi.fn(async () => 'charged');
    const { deliver } = consumer(parts, [charges(charge)]);
    await deliver();
    const visibleAt = parts.queue.messages()[0]?.visibleAt ?? 0;
    expect(visibleAt).toBeGreaterThan(endsBy + CLOCK_SKEW_MS);
    await parts.clock.advance(visibleAt - parts.clock.now());
    await deliver();
    expect(charge).toHaveBeenCalledTimes(1);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', attempts: 1 });
  });
});

describe('an effect that its handler tries again', () => {
  test('starts at once, though its release was lost, and a release that lands late does not open it', async () => {
    const { wrap, land } = abandoning('RELEASED', 1);
    const parts = rig({ wrap });
    const event = send(parts);
    const charge = vi.fn(async () => {
      await land();
      return 'charged';
    });
    await consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        await ctx.once('charge', refuse).catch(() => {});
        await ctx.once('charge', charge);
      }),
    ]).deliver();
    expect(charge).toHaveBeenCalledTimes(1);
    expect(storedEffect(parts, event)).toMatchObject({ status: 'COMPLETED', run: 2 });
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', attempts: 1 });
  });

  test('is not opened again by a late try of the start that it has released', async () => {
    const parts = rig();
    const event = send(parts);
    const starts: Update[] = [];
    const write: Table['write'] = async (action) => {
      if (action.Update && statusSet(action.Update) === 'IN_PROGRESS') starts.push(action.Update);
      return parts.memory.write(action);
    };
    await consumer(
      parts,
      [
        leased(ThingHappened, async (_event, ctx) => {
          await ctx.once('charge', refuse).catch(() => {});
          for (const Update of starts) await parts.memory.write({ Update }).catch(() => {});
        }),
      ],
      { ...parts.memory, write },
    ).deliver();
    expect(starts).toHaveLength(1);
    expect(storedEffect(parts, event)).toMatchObject({ status: 'RELEASED', run: 1 });
  });

  test('is kept when the start of an earlier call is stored late', async () => {
    const { wrap, land } = abandoning('IN_PROGRESS', 1);
    const parts = rig({ wrap });
    const event = send(parts);
    const first = vi.fn(refuse);
    const charge = vi.fn(async () => {
      await land();
      return 'charged';
    });
    await consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        await ctx.once('charge', first).catch(() => {});
        await ctx.once('charge', charge);
      }),
    ]).deliver();
    expect(first).not.toHaveBeenCalled();
    expect(charge).toHaveBeenCalledTimes(1);
    expect(storedEffect(parts, event)).toMatchObject({ status: 'COMPLETED', run: 2 });
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', attempts: 1 });
  });
});

test.each([
  ['belongs to another worker', { status: 'PROCESSING', fence: 'another' }],
  ['was resolved', { status: 'PROCESSED', fence: 'another' }],
  ['was rejected', { status: 'REJECTED' }],
])('the result of an effect is stored, though its message %s by then', async (_what, change) => {
  const parts = rig();
  const event = send(parts);
  const handler = async (_event: unknown, ctx: LeasedContext) => {
    await ctx.once('charge', async () => {
      await parts.memory.write({ Put: { Item: { ...inboxRow(parts, event), ...change } as Item } });
      return 'charged';
    });
  };
  await consumer(parts, [leased(ThingHappened, handler)]).deliver();
  expect(storedEffect(parts, event)).toMatchObject({ status: 'COMPLETED', result: '"charged"' });
  expect(inboxRow(parts, event)).toMatchObject(change);
});

test('the result of an effect that its handler did not await is stored after the commit', async () => {
  const parts = rig();
  const event = send(parts);
  const handler = async (_event: unknown, ctx: LeasedContext) => {
    void ctx.once('charge', async () => {
      await parts.clock.sleep(2_000);
      return 'charged';
    });
    await parts.clock.sleep(1_000);
    await ctx.commit({ writes: [domainRow] });
  };
  await consumer(parts, [leased(ThingHappened, handler)]).deliver();
  expect(storedEffect(parts, event)).toMatchObject({ status: 'COMPLETED', result: '"charged"' });
  expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
});
