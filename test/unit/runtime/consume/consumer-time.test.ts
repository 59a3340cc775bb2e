import { describe, expect, test, vi } from 'vitest';
import { CLOCK_SKEW_MS } from '../../../../lambdas/runtime/clock.ts';
import { leased, transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import { errorCode, PoisonMessage, TransactionCancelled } from '../../../../lambdas/runtime/errors.ts';
import type { Table } from '../../../../lambdas/runtime/store/table.ts';
import { rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { consumer, domainRow, inboxRow, send } from './consumer-rig.ts';

describe('a batch', () => {
  test.each([
    ['leased', leased],
    ['transactional', transactional],
  ])('is answered before its function is stopped, however long a %s handler takes', async (_kind, kind) => {
    const parts = rig();
    const handler = kind(ThingHappened, async () => {
      await parts.clock.sleep(1_000_000);
      return {};
    });
    send(parts);
    const startedAt = parts.clock.now();
    const { failed } = await consumer(parts, [handler]).deliver(20_000);
    expect(failed).toHaveLength(1);
    expect(parts.clock.now() - startedAt).toBeLessThan(20_000);
  });
});

describe('a message', () => {
  test('is hidden by a renewal no longer than until its function is stopped', async () => {
    const parts = rig();
    const endsBy = parts.clock.now() + 20_000;
    const visibleAt: (number | undefined)[] = [];
    const handler = leased(ThingHappened, async () => {
      await parts.clock.sleep(15_000);
      visibleAt.push(parts.queue.messages()[0]?.visibleAt);
    });
    send(parts);
    await consumer(parts, [handler]).deliver(20_000);
    expect(visibleAt[0]).toBeGreaterThanOrEqual(endsBy);
    expect(visibleAt[0]).toBeLessThan(endsBy + 3_000);
  });

  test('a rejected message becomes visible again at once until it is a dead letter', async () => {
    const parts = rig();
    const handler = leased(ThingHappened, async () => {
      throw new PoisonMessage('not like this');
    });
    send(parts);
    const { deliver } = consumer(parts, [handler]);
    for (let receive = 1; parts.queue.deadLetters().length === 0; receive += 1) {
      expect(receive).toBeLessThan(100);
      await deliver();
      await parts.clock.advance(1_000);
    }
  });

  test('whose transaction was throttled is not rerun at once', async () => {
    const parts = rig();
    const handle = vi.fn(async () => ({ events: [1, 2].map(parts.happened) }));
    const transact = async () => {
      throw new TransactionCancelled([
        { code: 'None' },
        { code: 'ConditionalCheckFailed' },
        { code: 'ThrottlingError' },
      ]);
    };
    send(parts);
    await consumer(parts, [transactional(ThingHappened, handle)], { ...parts.memory, transact }).deliver();
    expect(handle).toHaveBeenCalledTimes(1);
  });
});

describe('when the time of its function is up, a handler', () => {
  const START_TO_STOP_MS = 29_000; // of 30 s, the last of which is for the response

  test('a handler with an unanswered commit keeps its lease until its function is stopped', async () => {
    const parts = rig();
    const event = send(parts);
    const transact = () =>
      Promise.reject(Object.assign(new Error('socket hang up'), { name: 'TimeoutError' }));
    const handler = leased(ThingHappened, async (_event, ctx) => {
      await ctx.commit({ writes: [domainRow] }).catch(() => {});
      await parts.clock.sleep(1_000_000);
    });
    const endsBy = parts.clock.now() + 30_000;
    await consumer(parts, [handler], { ...parts.memory, transact }).deliver();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSING', endsBy, outOfTime: true });
    expect(parts.queue.messages()[0]?.visibleAt).toBeGreaterThan(endsBy + CLOCK_SKEW_MS);
  });

  test('is told so before the row is marked, and starts nothing more', async () => {
    const parts = rig();
    const event = send(parts);
    const startedAt = parts.clock.now();
    const write: Table['write'] = async (wanted) => {
      if (wanted.Update?.UpdateExpression?.includes('outOfTime = :outOfTime')) await parts.clock.sleep(200);
      return parts.memory.write(wanted);
    };
    const charge = vi.fn();
    const told: [number, unknown, string][] = [];
    const handler = leased(ThingHappened, async (_event, ctx) => {
      ctx.signal.addEventListener('abort', async () => {
        const ranAt = parts.clock.now();
        const effect = await ctx.once('charge', charge).catch(errorCode);
        told.push([
          ranAt,
          effect,
          await ctx.commit({ writes: [domainRow] }).then(() => 'committed', errorCode),
        ]);
      });
      await parts.clock.sleep(1_000_000);
    });
    await consumer(parts, [handler], { ...parts.memory, write }).deliver();
    expect(told).toEqual([[startedAt + START_TO_STOP_MS, 'OUT_OF_TIME', 'OUT_OF_TIME']]);
    expect(charge).not.toHaveBeenCalled();
    expect(parts.memory.item({ PK: 'THING#1', SK: 'THING' })).toBeUndefined();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSING', outOfTime: true });
  });

  test('a handler that continues has no time left and can neither start an effect nor commit', async () => {
    const parts = rig();
    send(parts);
    const charge = vi.fn();
    const outcomes: unknown[] = [];
    const handler = leased(ThingHappened, async (_event, ctx) => {
      await parts.clock.sleep(40_000);
      outcomes.push(ctx.remainingMs());
      outcomes.push(await ctx.once('charge', charge).catch(errorCode));
      outcomes.push(await ctx.commit({ writes: [domainRow] }).catch(errorCode));
    });
    await consumer(parts, [handler]).deliver();
    await parts.clock.advance(20_000);
    expect(outcomes).toEqual([0, 'HANDLER_ENDED', 'HANDLER_ENDED']);
    expect(charge).not.toHaveBeenCalled();
  });

  test.each([
    ['is awaited by its handler, which judges it', async (call: Promise<unknown>) => call.catch(() => {}), 0],
    ['is not awaited, and is logged', async () => {}, 1],
  ])('a handler continues while a later call fails that %s', async (_what, look, logged) => {
    const parts = rig();
    send(parts);
    const transact = async () => {
      await parts.clock.sleep(40_000);
      throw Object.assign(new Error('refused'), { name: 'ValidationException' });
    };
    const handler = leased(ThingHappened, async (_event, ctx) => {
      await look(ctx.commit({ writes: [domainRow] }));
      await parts.clock.sleep(1_000_000);
    });
    await consumer(parts, [handler], { ...parts.memory, transact }).deliver();
    await parts.clock.advance(20_000);
    const lines = parts.telemetry.lines().filter(({ message }) => message.includes('did not await'));
    expect(lines).toHaveLength(logged);
  });

  test('whose row cannot be marked is answered for all the same, which is logged', async () => {
    const parts = rig();
    send(parts);
    const write: Table['write'] = async (wanted) => {
      if (wanted.Update?.UpdateExpression?.includes('outOfTime = :outOfTime')) throw new Error('denied');
      return parts.memory.write(wanted);
    };
    const handler = leased(ThingHappened, () => parts.clock.sleep(1_000_000));
    const { failed } = await consumer(parts, [handler], { ...parts.memory, write }).deliver();
    expect(failed).toHaveLength(1);
    expect(parts.telemetry.lines()).toContainEqual(
      expect.objectContaining({
        level: 'warn',
        message: 'A message that ran out of time could not be marked',
      }),
    );
    expect(parts.telemetry.counted('TableFailures')).toBe(0);
  });
});

test('an effect receives the signal of its handler', async () => {
  const parts = rig();
  send(parts);
  const same: boolean[] = [];
  const handler = leased(ThingHappened, async (_event, ctx) => {
    await ctx.once('charge', async (_key, signal) => void same.push(signal === ctx.signal));
  });
  await consumer(parts, [handler]).deliver();
  expect(same).toEqual([true]);
});

describe('a message that its function has too little time left to start', () => {
  test('is not claimed, and waits as in an outage: for longer each time', async () => {
    const parts = rig();
    const handle = vi.fn();
    const event = send(parts);
    const { deliver } = consumer(parts, [leased(ThingHappened, handle)]);
    for (const longestMs of [60_000, 120_000, 240_000]) {
      const startedAt = parts.clock.now();
      await deliver(1_999);
      const [message] = parts.queue.messages();
      const waitsMs = (message?.visibleAt ?? 0) - startedAt;
      expect(waitsMs).toBeGreaterThanOrEqual(longestMs * 0.8);
      expect(waitsMs).toBeLessThanOrEqual(longestMs + 1_000);
      await parts.clock.advance((message?.visibleAt ?? 0) - parts.clock.now());
    }
    expect(handle).not.toHaveBeenCalled();
    expect(inboxRow(parts, event)).toBeUndefined();
  });
});
