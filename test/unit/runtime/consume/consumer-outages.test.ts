import { describe, expect, test, vi } from 'vitest';
import { PoisonMessage, TransactionCancelled } from '../../../../lambdas/runtime/base/errors.ts';
import { HOUR_MS } from '../../../../lambdas/runtime/base/units.ts';
import { type LeasedContext, leased, transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import type { Table } from '../../../../lambdas/runtime/store/table.ts';
import { ThingHappened } from '../../../support/runtime-rig.ts';
import { awsError, beforeWrite, domainRow, oneMessage, throttled } from './consumer-rig.ts';

/** The receives of a queue of the default settings before it dead-letters a message. */
const maxReceiveCount = 105;

const ALL = ['get', 'query', 'write', 'transact', 'updateEach'] as const;

const cancelled = (...codes: string[]) => new TransactionCancelled(codes.map((code) => ({ code })));
const commits = (ctx: LeasedContext) => ctx.commit({ writes: [domainRow] });

/** The table of a message, whose calls fail for some time. */
function outage(
  { clock, memory }: ReturnType<typeof oneMessage>,
  forMs: number,
  calls: readonly (keyof Table)[],
  error = () => awsError('ThrottlingException'),
): Table {
  const until = clock.now() + forMs;
  return new Proxy(memory, {
    get: (target, name) => {
      const call = Reflect.get(target, name) as (...args: unknown[]) => unknown;
      if (!calls.includes(name as keyof Table)) return call;
      return (...args: unknown[]) => (clock.now() < until ? Promise.reject(error()) : call(...args));
    },
  });
}

describe.each<[string, readonly (keyof Table)[], () => Error]>([
  ['cannot be reached', ALL, () => Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })],
  ['does not answer', ALL, () => awsError('TimeoutError')],
  ['throttles everything', ALL, () => awsError('ThrottlingException')],
  ['throttles transactions', ['transact'], () => cancelled('ThrottlingError', 'None')],
  ['meets other transactions', ['transact'], () => cancelled('TransactionConflict')],
  ['cannot use its key', ALL, () => awsError('KMSAccessDeniedException')],
  ['refuses the function', ALL, () => awsError('AccessDeniedException')],
  ['refuses transactions to the function', ['transact'], () => awsError('AccessDeniedException')],
  [
    'has an internal error',
    ALL,
    () => Object.assign(awsError('SomethingNew'), { $metadata: { httpStatusCode: 500 } }),
  ],
])('a table that %s for 4 hours', (_what, calls, error) => {
  test.each([
    ['a leased', leased(ThingHappened, (_event, ctx) => commits(ctx))],
    ['a transactional', transactional(ThingHappened, async () => ({ writes: [domainRow] }))],
    [
      'an effectful',
      leased(ThingHappened, async (_event, ctx) => {
        await ctx.once('charge', async () => ({ charged: true }));
        await commits(ctx);
      }),
    ],
  ])('costs %s message no attempt, and dead-letters nothing', async (_kind, handler) => {
    const one = oneMessage({}, { maxReceiveCount });
    const began = one.clock.now();
    const table = outage(one, 4 * HOUR_MS, calls, error);
    await one.drain(handler, { table, maxAttempts: 1 }, maxReceiveCount);
    expect(one.queue.deadLetters()).toEqual([]);
    expect(one.row()).toMatchObject({ status: 'PROCESSED', attempts: 1 });
    expect(one.clock.now() - began).toBeLessThan(4.3 * HOUR_MS);
    expect(one.telemetry.counted('TableFailures')).toBeGreaterThanOrEqual(19);
    expect(one.telemetry.counted('MessagesRejected')).toBe(0);
  });
});

describe('an outage', () => {
  test('delays a message by about a minute at first, and by at most 15 minutes', async () => {
    const one = oneMessage({}, { maxReceiveCount });
    const table = outage(one, Number.POSITIVE_INFINITY, ALL);
    for (const longest of [60, 120, 240, 480, 900, 900, 900, 900]) {
      await one.deliver(() => {}, { table });
      expect(one.waitsMs()).toBeLessThanOrEqual((longest + 1) * 1_000);
      expect(one.waitsMs()).toBeGreaterThanOrEqual(longest * 790);
    }
  });

  test('during a handler is recorded on the row, and its claim counts no attempt', async () => {
    const one = oneMessage();
    await one.deliver(commits, { table: outage(one, 20_000, ['transact']) });
    expect(one.row()).toMatchObject({
      status: 'FAILED',
      attempts: 0,
      lastError: 'of AWS',
      fingerprint: 'worker ThrottlingException: of AWS',
      retryAt: one.visibleAt(),
    });
    expect(one.telemetry.counted('TableFailures')).toBe(1);
    expect(one.telemetry.counted('MessagesFailed')).toBe(0);
  });

  test('that begins during a handler and outlasts it is counted for the handler and for the end of its claim', async () => {
    const one = oneMessage();
    const calls: (keyof Table)[] = [];
    const table = outage(one, Number.POSITIVE_INFINITY, calls);
    const handler = (ctx: LeasedContext) => {
      calls.push(...ALL);
      return commits(ctx);
    };
    await one.deliver(handler, { table });
    expect(one.row()).toMatchObject({ status: 'PROCESSING' });
    expect(one.telemetry.counted('TableFailures')).toBe(2);
  });

  test.each([
    ['at the start of an effect', 'startedAt', 0],
    ['while the result of an effect is stored', 'completedAt', 1],
  ])('%s counts no attempt', async (_when, text, runs) => {
    const one = oneMessage();
    const charge = vi.fn(async () => 'charged');
    await one.deliver((ctx) => ctx.once('charge', charge), {
      table: beforeWrite(one.memory, text, throttled),
    });
    expect(charge).toHaveBeenCalledTimes(runs);
    expect(one.row()).toMatchObject({ status: 'FAILED', attempts: 0 });
    expect(one.telemetry.counted('TableFailures')).toBe(1);
    expect(one.telemetry.counted('MessagesFailed')).toBe(0);
  });

  test('in the first run of a transactional handler, which needs no claim, is not a failure of the handler', async () => {
    const one = oneMessage();
    const handler = transactional(ThingHappened, async () => ({ writes: [domainRow] }));
    await one.deliver(handler, { table: outage(one, 20_000, ['transact']) });
    expect(one.row()).toBeUndefined();
    expect(one.telemetry.counted('TableFailures')).toBe(1);
    expect(one.telemetry.counted('MessagesFailed')).toBe(0);
    expect(one.waitsMs()).toBeGreaterThan(45_000);
  });

  test('of a provider counts an attempt', async () => {
    const one = oneMessage();
    await one.deliver((ctx) => ctx.once('charge', throttled));
    expect(one.row()).toMatchObject({ status: 'FAILED', attempts: 1 });
    expect(one.telemetry.counted('TableFailures')).toBe(0);
  });

  test('does not prevent the rejection of a message whose handler throws PoisonMessage', async () => {
    const one = oneMessage();
    const table = outage(one, 4_000, ['transact'], () => cancelled('ThrottlingError', 'None'));
    const handler = async (ctx: LeasedContext) => {
      await commits(ctx).catch(() => {});
      await one.clock.sleep(5_000);
      throw new PoisonMessage('never');
    };
    await one.deliver(handler, { table });
    expect(one.row()).toMatchObject({ status: 'REJECTED', reason: 'POISON_MESSAGE' });
  });

  test('while a failure is written counts no attempt, and the next claim takes over', async () => {
    const one = oneMessage();
    const fails = () => Promise.reject(new Error('bank answered 503'));
    const table = beforeWrite(one.memory, ':FAILED, retryAt', () =>
      Promise.reject(awsError('InternalServerError')),
    );
    await one.deliver(fails, { table });
    expect(one.row()).toMatchObject({ status: 'PROCESSING', attempts: 1 });
    await one.deliver(fails);
    expect(one.row()).toMatchObject({ status: 'FAILED', attempts: 1, lastError: 'bank answered 503' });
  });

  test('of an unknown kind at the claim fails the message, not the batch, and the handler runs later', async () => {
    const one = oneMessage();
    const handle = vi.fn();
    const write = () => Promise.reject(new Error('unknown'));
    const { failed, error } = await one.deliver(handle, { table: { ...one.memory, write } });
    expect({ failed: failed.length, error }).toEqual({ failed: 1, error: undefined });
    expect(handle).not.toHaveBeenCalled();
    expect(one.waitsMs()).toBeGreaterThan(0);
    await one.deliver(handle);
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
  });
});
