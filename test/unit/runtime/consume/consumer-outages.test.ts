import { describe, expect, test, vi } from 'vitest';
import { leased, transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import { PoisonMessage, TransactionCancelled } from '../../../../lambdas/runtime/errors.ts';
import type { Table } from '../../../../lambdas/runtime/store/table.ts';
import { rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { consumer, domainRow, inboxRow, type Parts, send } from './consumer-rig.ts';

const HOUR_MS = 3_600_000;

/** What a queue of the default settings hands out before it dead-letters. */
const MAX_RECEIVE_COUNT = 105;

function named(name: string): Error {
  return Object.assign(new Error('of AWS'), { name });
}

/** A transaction of two actions whose first one was refused. */
function cancelled(code: string): Error {
  return new TransactionCancelled([{ code }, { code: 'None' }]);
}

/** The table, out of reach until a time. */
function outUntil(parts: Parts, until: number, calls: readonly (keyof Table)[], error: () => Error): Table {
  return new Proxy(parts.memory, {
    get: (target, name) => {
      const call = Reflect.get(target, name) as (...args: unknown[]) => unknown;
      if (!calls.includes(name as keyof Table)) return call;
      return (...args: unknown[]) => {
        if (parts.clock.now() < until) return Promise.reject(error());
        return call(...args);
      };
    },
  });
}

const ALL = ['get', 'query', 'write', 'transact', 'updateEach'] as const;

const OUTAGES: [string, readonly (keyof Table)[], () => Error][] = [
  ['cannot be reached', ALL, () => Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })],
  ['does not answer', ALL, () => named('TimeoutError')],
  ['throttles everything', ALL, () => named('ThrottlingException')],
  ['throttles transactions', ['transact'], () => cancelled('ThrottlingError')],
  [
    'meets other transactions',
    ['transact'],
    () => new TransactionCancelled([{ code: 'TransactionConflict' }]),
  ],
  ['cannot use its key', ALL, () => named('KMSAccessDeniedException')],
  ['refuses the function', ALL, () => named('AccessDeniedException')],
  ['refuses transactions to the function', ['transact'], () => named('AccessDeniedException')],
  ['fails inside', ALL, () => Object.assign(named('SomethingNew'), { $metadata: { httpStatusCode: 500 } })],
];

describe.each(OUTAGES)('a table that %s for 4 hours', (_what, calls, error) => {
  test.each([
    ['leased', leased(ThingHappened, async (_event, ctx) => ctx.commit({ writes: [domainRow] }))],
    ['transactional', transactional(ThingHappened, async () => ({ writes: [domainRow] }))],
    [
      'effectful',
      leased(ThingHappened, async (_event, ctx) => {
        await ctx.once('charge', async () => ({ charged: true }));
        await ctx.commit({ writes: [domainRow] });
      }),
    ],
  ])('counts no attempt of a %s message, and dead-letters nothing', async (_kind, handler) => {
    const parts = rig({ maxReceiveCount: MAX_RECEIVE_COUNT });
    const event = send(parts);
    const began = parts.clock.now();
    const table = outUntil(parts, began + 4 * HOUR_MS, calls, error);
    await consumer(parts, [handler], table, { maxAttempts: 1 }).drain(MAX_RECEIVE_COUNT);
    expect(parts.queue.deadLetters()).toEqual([]);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', attempts: 1 });
    expect(parts.clock.now() - began).toBeLessThan(4.3 * HOUR_MS);
    expect(parts.telemetry.counted('TableFailures')).toBeGreaterThanOrEqual(19);
    expect(parts.telemetry.counted('MessagesRejected')).toBe(0);
  });
});

describe('an outage', () => {
  test('is waited out for about a minute at first, and for 15 minutes at most', async () => {
    const parts = rig({ maxReceiveCount: MAX_RECEIVE_COUNT });
    send(parts);
    const table = outUntil(parts, Number.POSITIVE_INFINITY, ALL, () => named('ThrottlingException'));
    const { deliver } = consumer(parts, [leased(ThingHappened, vi.fn())], table);
    const delays: number[] = [];
    for (let receive = 1; receive <= 8; receive += 1) {
      await deliver();
      const [message] = parts.queue.messages();
      delays.push(((message?.visibleAt ?? 0) - parts.clock.now()) / 1_000);
      await parts.clock.advance((message?.visibleAt ?? 0) - parts.clock.now());
    }
    const longest = [60, 120, 240, 480, 900, 900, 900, 900];
    for (const [i, delay] of delays.entries()) {
      expect(delay).toBeLessThanOrEqual((longest[i] ?? 0) + 1);
      expect(delay).toBeGreaterThanOrEqual((longest[i] ?? 0) * 0.79);
    }
  });

  test('in the middle of a handler is written on the row, and its claim is taken back', async () => {
    const parts = rig();
    const event = send(parts);
    const table = outUntil(parts, parts.clock.now() + 20_000, ['transact'], () =>
      named('ThrottlingException'),
    );
    const handler = leased(ThingHappened, async (_event, ctx) => ctx.commit({ writes: [domainRow] }));
    await consumer(parts, [handler], table).deliver();
    expect(inboxRow(parts, event)).toMatchObject({
      status: 'FAILED',
      attempts: 0,
      lastError: 'of AWS',
      fingerprint: 'worker ThrottlingException: of AWS',
      retryAt: parts.queue.messages()[0]?.visibleAt,
    });
    expect(parts.telemetry.counted('TableFailures')).toBe(1);
    expect(parts.telemetry.counted('MessagesFailed')).toBe(0);
  });

  test.each([
    ['start of an effect', 'startedAt', 0],
    ['storing of its result', 'completedAt', 1],
  ])('at the %s counts no attempt', async (_when, text, runs) => {
    const parts = rig();
    const event = send(parts);
    const write: Table['write'] = async (wanted) => {
      if (JSON.stringify(wanted).includes(text)) throw named('ThrottlingException');
      return parts.memory.write(wanted);
    };
    const charge = vi.fn(async () => 'charged');
    const handler = leased(ThingHappened, async (_event, ctx) => void (await ctx.once('charge', charge)));
    await consumer(parts, [handler], { ...parts.memory, write }).deliver();
    expect(charge).toHaveBeenCalledTimes(runs);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'FAILED', attempts: 0 });
    expect(parts.telemetry.counted('TableFailures')).toBe(1);
    expect(parts.telemetry.counted('MessagesFailed')).toBe(0);
  });

  test('in the first run of a transactional handler, which needs no claim, is not a failure of the handler', async () => {
    const parts = rig();
    const event = send(parts);
    const table = outUntil(parts, parts.clock.now() + 20_000, ['transact'], () =>
      named('ThrottlingException'),
    );
    const handler = transactional(ThingHappened, async () => ({ writes: [domainRow] }));
    await consumer(parts, [handler], table).deliver();
    expect(inboxRow(parts, event)).toBeUndefined();
    expect(parts.telemetry.counted('TableFailures')).toBe(1);
    expect(parts.telemetry.counted('MessagesFailed')).toBe(0);
    const waits = (parts.queue.messages()[0]?.visibleAt ?? 0) - parts.clock.now();
    expect(waits).toBeGreaterThan(45_000);
  });

  test("is not what a provider's failure looks like: that counts", async () => {
    const parts = rig();
    const event = send(parts);
    const handler = leased(ThingHappened, async (_event, ctx) =>
      ctx.once('charge', async () => {
        throw named('ThrottlingException');
      }),
    );
    await consumer(parts, [handler]).deliver();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'FAILED', attempts: 1 });
    expect(parts.telemetry.counted('TableFailures')).toBe(0);
  });

  test('does not save what its handler calls poison', async () => {
    const parts = rig();
    const event = send(parts);
    const table = outUntil(parts, parts.clock.now() + 4_000, ['transact'], () =>
      cancelled('ThrottlingError'),
    );
    const handler = leased(ThingHappened, async (_event, ctx) => {
      await ctx.commit({ writes: [domainRow] }).catch(() => {});
      await parts.clock.sleep(5_000);
      throw new PoisonMessage('never');
    });
    await consumer(parts, [handler], table).deliver();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'REJECTED', reason: 'POISON_MESSAGE' });
  });

  test('while a failure is written counts no attempt either: the next claim takes over', async () => {
    const parts = rig();
    const event = send(parts);
    let failing = true;
    const table = new Proxy(parts.memory, {
      get: (target, name) => {
        const call = Reflect.get(target, name) as (...args: unknown[]) => unknown;
        return (...args: unknown[]) =>
          failing && JSON.stringify(args).includes(':FAILED, retryAt')
            ? Promise.reject(named('InternalServerError'))
            : call(...args);
      },
    });
    const handler = leased(ThingHappened, async () => {
      throw new Error('of its own');
    });
    const { deliver } = consumer(parts, [handler], table);
    await deliver();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSING', attempts: 1 });
    failing = false;
    await parts.clock.advance(120_000);
    await deliver();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'FAILED', attempts: 1, lastError: 'of its own' });
  });
});
