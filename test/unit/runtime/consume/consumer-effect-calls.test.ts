import { describe, expect, test, vi } from 'vitest';
import { CLOCK_SKEW_MS } from '../../../../lambdas/runtime/clock.ts';
import { type LeasedContext, leased } from '../../../../lambdas/runtime/consume/handler.ts';
import { effectKey } from '../../../../lambdas/runtime/store/rows.ts';
import type { Table, Update } from '../../../../lambdas/runtime/store/table.ts';
import type { MemoryTable } from '../../../../testing/index.ts';
import { rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { CONSUMER, consumer, inboxRow, type Parts, send } from './consumer-rig.ts';

/** An effect whose function, by its own clock, was or is stopped at `endsBy`. */
async function leftInProgress(parts: Parts, eventId: string, endsBy: number): Promise<void> {
  const row = { schema: 1, status: 'IN_PROGRESS', fence: 'dead', run: 1, endsBy, startedAt: 0 };
  await parts.memory.write({ Put: { Item: { ...effectKey(CONSUMER, eventId, 'charge'), ...row } } });
}

const charges = (charge: () => Promise<unknown>) =>
  leased(ThingHappened, async (_event, ctx) => void (await ctx.once('charge', charge)));

const timeout = () => Object.assign(new Error('No answer came in time'), { name: 'TimeoutError' });

const refuse = async () => Promise.reject(new Error('The provider is busy'));

const chargeRow = (parts: Parts, event: { readonly eventId: string }) =>
  parts.memory.item(effectKey(CONSUMER, event.eventId, 'charge'));

/** A table on which one kind of write times out, and takes effect only when the test says so. */
function abandoning(status: 'RELEASED' | 'IN_PROGRESS', tries: number) {
  const late: (() => Promise<unknown>)[] = [];
  const abandons = (update: Update | undefined) =>
    late.length < tries && update?.UpdateExpression?.includes(`#status = :${status}`);
  const wrap = (memory: MemoryTable): Table => ({
    ...memory,
    write: async (write) => {
      if (!abandons(write.Update)) return memory.write(write);
      late.push(() => memory.write(write));
      throw timeout();
    },
    transact: async (actions, token) => {
      if (!actions.some(({ Update }) => abandons(Update))) return memory.transact(actions, token);
      late.push(() => memory.transact(actions, token));
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
    await leftInProgress(parts, event.eventId, parts.clock.now() + endedMs);
    const charge = vi.fn(async () => 'charged');
    await consumer(parts, [charges(charge)]).deliver();
    expect(charge).toHaveBeenCalledTimes(runs);
  });

  test('brings its message back when it may be started, and not before', async () => {
    const parts = rig();
    const event = send(parts);
    const endsBy = parts.clock.now() + 20_000;
    await leftInProgress(parts, event.eventId, endsBy);
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
    expect(chargeRow(parts, event)).toMatchObject({ status: 'COMPLETED', run: 2 });
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', attempts: 1 });
  });

  test('is kept when the start of an earlier call is stored late', async () => {
    // All tries of one start, so that the first call ends without knowing that it will happen.
    const { wrap, land } = abandoning('IN_PROGRESS', 3);
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
    expect(chargeRow(parts, event)).toMatchObject({ status: 'COMPLETED', run: 2 });
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', attempts: 1 });
  });
});

test('the result of an effect is stored, though its message belongs to another worker by then', async () => {
  const parts = rig();
  const event = send(parts);
  const handler = async (_event: unknown, ctx: LeasedContext) => {
    await ctx.once('charge', async () => {
      await parts.memory.write({ Put: { Item: { ...inboxRow(parts, event), fence: 'another' } } });
      return 'charged';
    });
  };
  await consumer(parts, [leased(ThingHappened, handler)]).deliver();
  expect(chargeRow(parts, event)).toMatchObject({ status: 'COMPLETED', result: '"charged"' });
  expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSING', fence: 'another' });
});
