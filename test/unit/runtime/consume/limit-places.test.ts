import { describe, expect, test } from 'vitest';
import { CLOCK_SKEW_MS } from '../../../../lambdas/runtime/base/clock.ts';
import { type LeasedContext, leased } from '../../../../lambdas/runtime/consume/handler.ts';
import type { LimitRow } from '../../../../lambdas/runtime/store/inbox-row.ts';
import { limitKey } from '../../../../lambdas/runtime/store/keys.ts';
import { rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { CONSUMER, consumer, inboxRow, send } from './consumer-rig.ts';

const BUCKET = limitKey({ consumer: CONSUMER, source: 'things', type: 'ThingHappened' }, 'm');

/** The time of the function, milliseconds. */
const FUNCTION_MS = 60_000;

interface Given {
  readonly perSecond?: number;
  readonly concurrency?: number | undefined;
  readonly expiresInMs?: number;
  /** Of the queue, which its consumer knows. @default that of the rig, which it does not know */
  readonly maxReceives?: number;
  /** @default it returns after a second */
  readonly run?: (clock: ReturnType<typeof rig>['clock'], ctx: LeasedContext) => Promise<void>;
}

function limited({ perSecond, concurrency = 1, expiresInMs, maxReceives, run }: Given = {}) {
  const slowMs: number[] = [];
  let refusesFree = false;
  let losesTake = false;
  const down = () => Object.assign(new Error('down'), { name: 'InternalServerError' });
  const parts = rig({
    ...(maxReceives !== undefined && { maxReceiveCount: maxReceives }),
    wrap: (memory) => ({
      ...memory,
      write: async (write) => {
        const text = write.Update?.UpdateExpression ?? '';
        if (refusesFree && text.includes('DELETE holders')) throw down();
        if (losesTake && text.includes('ADD holders')) {
          await memory.write(write).catch(() => {});
          throw down();
        }
        const item = await memory.write(write);
        const late = text.includes('concurrency') ? slowMs.shift() : undefined;
        if (late !== undefined) await parts.clock.sleep(late);
        return item;
      },
    }),
  });
  const ran: number[] = [];
  let running = 0;
  let most = 0;
  const handler = leased(
    ThingHappened,
    async (_event, ctx) => {
      ran.push(parts.clock.now());
      running += 1;
      most = Math.max(most, running);
      try {
        await (run?.(parts.clock, ctx) ?? parts.clock.sleep(1_000));
      } finally {
        running -= 1;
      }
    },
    { limit: { key: () => 'm', perSecond, ...(concurrency > 0 && { concurrency }) }, expiresInMs },
  );
  return {
    ...parts,
    ...consumer(parts, [handler], parts.table, { maxReceives }),
    parts,
    ran,
    slowMs,
    most: () => most,
    refuseFree: () => {
      refusesFree = true;
    },
    loseTake: () => {
      losesTake = true;
    },
    row: () => parts.memory.item(BUCKET) as Partial<LimitRow> | undefined,
  };
}

describe('a limit with a concurrency', () => {
  test('of ten messages in one batch, two run at once; those that wait count no attempt', async () => {
    const one = limited({ concurrency: 2, run: (clock) => clock.sleep(5_000) });
    const events = Array.from({ length: 10 }, () => send(one.parts));
    await one.deliver(FUNCTION_MS);
    expect(one.most()).toBe(2);
    const rows = events.map((event) => inboxRow(one.parts, event));
    const waiting = rows.filter((row) => row?.status === 'FAILED');
    expect(waiting.length).toBeGreaterThan(5);
    for (const row of waiting) {
      expect(row).toMatchObject({ attempts: 0 });
      expect(row?.pastAttempts?.at(-1)?.wait?.limit).toMatchObject({ key: 'm', slotAt: expect.any(Number) });
    }
    await one.drain();
    expect(one.most()).toBe(2);
    expect(one.ran).toHaveLength(10);
    expect(one.row()?.holders).toBeUndefined();
  });

  test('the place is freed when the handler returns or throws, and measures the run', async () => {
    const one = limited({
      run: async (clock) => {
        await clock.sleep(1_500);
        if (one.ran.length === 1) throw new Error('down');
      },
    });
    send(one.parts);
    await one.deliver(FUNCTION_MS);
    expect(one.row()).toMatchObject({ runMs: 1_500 });
    expect(one.row()?.holders).toBeUndefined();
    await one.drain();
    expect(one.ran).toHaveLength(2);
    expect(one.row()?.holders).toBeUndefined();
  });

  test.each([
    ['', async () => undefined],
    [', also after its commit', (ctx: LeasedContext) => ctx.commit({ writes: [] })],
  ])(
    'a handler that ignores its signal keeps its place: the batch is not answered, so its function is stopped%s',
    async (_text, begin) => {
      const one = limited({
        run: async (clock, ctx) => {
          await begin(ctx);
          await clock.sleep(100_000);
        },
      });
      const endsBy = one.clock.now() + FUNCTION_MS;
      send(one.parts);
      let isAnswered = false;
      const answered = one.deliver(FUNCTION_MS).then(() => {
        isAnswered = true;
      });
      await one.clock.advance(FUNCTION_MS);
      expect(isAnswered).toBe(false);
      const [holder = ''] = [...(one.row()?.holders ?? [])];
      expect(Number(holder.split('/')[0])).toBe(endsBy + CLOCK_SKEW_MS);
      await answered;
      expect(one.row()?.holders).toBeUndefined();
    },
  );

  test('a handler that ends at its signal frees its place, and the batch is answered', async () => {
    const one = limited({ run: (clock, { signal }) => clock.sleep(100_000, signal) });
    const endsBy = one.clock.now() + FUNCTION_MS;
    send(one.parts);
    await one.deliver(FUNCTION_MS);
    expect(one.clock.now()).toBeLessThan(endsBy);
    expect(one.row()?.holders).toBeUndefined();
  });

  test('a message that becomes stale in the wait for its place frees its place, and does not run', async () => {
    const one = limited({ expiresInMs: 1_000 });
    one.slowMs.push(5_000);
    const event = send(one.parts);
    await one.deliver(FUNCTION_MS);
    expect(inboxRow(one.parts, event)?.status).toBe('DISCARDED');
    expect(one.row()).toMatchObject({ concurrency: 1 });
    expect(one.row()?.holders).toBeUndefined();
    expect(one.row()?.runMs).toBeUndefined();
  });

  test('without an answer to the write that frees it, the message is processed, and the place is free later', async () => {
    const one = limited();
    one.refuseFree();
    const event = send(one.parts);
    await one.deliver(FUNCTION_MS);
    expect(inboxRow(one.parts, event)?.status).toBe('PROCESSED');
    expect(one.row()?.holders?.size).toBe(1);
    expect(one.telemetry.lines().some(({ message }) => message.includes('place of a limit'))).toBe(true);
  });

  test('without an answer to the write that takes it, the place is freed, and no attempt is counted', async () => {
    const one = limited();
    one.loseTake();
    const event = send(one.parts);
    await one.deliver(FUNCTION_MS);
    expect(one.ran).toEqual([]);
    expect(inboxRow(one.parts, event)).toMatchObject({ status: 'FAILED', attempts: 0 });
    expect(one.row()).toMatchObject({ concurrency: 1 });
    expect(one.row()?.holders).toBeUndefined();
  });

  test('the time of an intended wait for a place is not one that a table took from a handler', async () => {
    const one = limited({
      run: async (clock, { signal }) => {
        await clock.sleep(100_000, signal);
        signal.throwIfAborted();
      },
    });
    const hold = (ms: number) =>
      one.memory.write({
        Put: {
          Item: { ...BUCKET, schema: 1, concurrency: 1, holders: new Set([`${one.clock.now() + ms}/a`]) },
        },
      });
    await hold(60_000);
    const event = send(one.parts);
    await one.deliver(FUNCTION_MS);
    expect(inboxRow(one.parts, event)?.status).toBe('FAILED');
    await one.clock.advance(10_000);
    await hold(4_000);
    await one.deliver(FUNCTION_MS);
    expect(one.ran).toHaveLength(1);
    expect(inboxRow(one.parts, event)).toMatchObject({ status: 'FAILED' });
    expect(one.telemetry.counted('TableFailures')).toBe(0);
  });

  test('a place that becomes free in the last moment of a function is left to others: the message keeps its wait', async () => {
    const one = limited();
    const now = one.clock.now();
    const holders = new Set([`${now + 1_900}/a`]);
    await one.memory.write({ Put: { Item: { ...BUCKET, schema: 1, concurrency: 1, holders } } });
    one.slowMs.push(100);
    const event = send(one.parts);
    await one.deliver(4_000);
    expect(one.telemetry.counted('TableFailures')).toBe(0);
    expect(inboxRow(one.parts, event)?.pastAttempts?.at(-1)?.wait).toMatchObject({ since: now + 100 });
    expect(one.row()?.holders).toEqual(holders);
  });

  test('a message whose token comes too late frees its place', async () => {
    const one = limited({ perSecond: 10 });
    one.slowMs.push(5_000, 5_000, 5_000);
    send(one.parts);
    await one.deliver(120_000);
    expect(one.ran).toEqual([]);
    expect(one.row()?.nextAt).toBeGreaterThan(0);
    expect(one.row()?.holders).toBeUndefined();
  });

  test('a message waits for longer than its queue would allow with the usual pauses', async () => {
    const one = limited({ maxReceives: 9 });
    const holders = new Set([`${one.clock.now() + 150_000}/a`]);
    await one.memory.write({ Put: { Item: { ...BUCKET, schema: 1, concurrency: 1, holders } } });
    send(one.parts);
    await one.drain();
    expect(one.queue.deadLetters()).toEqual([]);
    expect(one.ran).toHaveLength(1);
  });
});
