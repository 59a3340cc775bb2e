import { describe, expect, test, vi } from 'vitest';
import { CLOCK_SKEW_MS } from '../../../../lambdas/runtime/base/clock.ts';
import { errorCode, PoisonMessage } from '../../../../lambdas/runtime/base/errors.ts';
import type { LeasedContext } from '../../../../lambdas/runtime/consume/handler.ts';
import type { Table } from '../../../../lambdas/runtime/store/table.ts';
import { awsError, beforeWrite, CONSUMER, domainRow, oneMessage, unanswered } from './consumer-rig.ts';

const charging = (charge: (key: string) => Promise<unknown>) => (ctx: LeasedContext) =>
  ctx.once('charge', charge);
const charged = () => vi.fn(async () => 'charged');
const busy = async (): Promise<never> => Promise.reject(new Error('bank answered 500'));

describe('a side effect', () => {
  test('runs under a stable key, and not again once its result is stored', async () => {
    const one = oneMessage();
    const keys: string[] = [];
    const results: unknown[] = [];
    await one.drain(async (ctx) => {
      const result = await ctx.once('charge', async (key) => {
        keys.push(key);
        return { id: 'c1', at: new Date(0) };
      });
      results.push(result);
      if (ctx.attempt < 3) throw new Error('later step failed');
      await ctx.commit({ writes: [domainRow] });
    });
    expect(keys).toEqual([`${CONSUMER}:${one.event.eventId}:charge`]);
    expect(results).toEqual(Array(3).fill({ id: 'c1', at: '1970-01-01T00:00:00.000Z' }));
    expect(one.effect()).toMatchObject({ status: 'COMPLETED' });
    expect(one.row()).toMatchObject({ status: 'PROCESSED', expiresAt: expect.any(Number) });
  });

  test('is refused under a name that has succeeded in this run, and may be tried again after a failure', async () => {
    const one = oneMessage();
    const ran: number[] = [];
    await one.deliver(async (ctx) => {
      await ctx.once('fee', busy).catch(() => {});
      await ctx.once('fee', async () => ran.push(0));
      for (const item of [1, 2]) await ctx.once('charge', async () => ran.push(item));
    });
    expect(ran).toEqual([0, 1]);
    expect(one.row()).toMatchObject({
      status: 'FAILED',
      lastError: expect.stringContaining('effect "charge" has already run in this handler'),
    });
  });

  test('is released when it fails, and runs again under the same key', async () => {
    const one = oneMessage();
    const keys: string[] = [];
    const charge = charging(async (key) => (keys.push(key) === 1 ? busy() : undefined));
    await one.deliver(charge);
    expect(one.effect()).toMatchObject({ status: 'RELEASED' });
    expect(one.row()).toMatchObject({ status: 'FAILED', lastError: 'bank answered 500' });
    await one.drain(charge);
    expect(keys).toEqual(Array(2).fill(keys[0]));
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
  });

  test('keeps its result when the message is taken over, failed, rejected and redriven', async () => {
    const one = oneMessage();
    await one.leaveEffect({ status: 'COMPLETED', result: '"charged"' });
    const past = one.clock.now() - 1;
    await one.overwrite({ status: 'PROCESSING', leaseUntil: past, endsBy: past });
    const seen: unknown[] = [];
    const charge = charged();
    await one.drain(async (ctx) => {
      seen.push(await ctx.once('charge', charge));
      throw seen.length < 3 ? new Error('later step failed') : new PoisonMessage('no such customer');
    });
    expect(one.row()).toMatchObject({ status: 'REJECTED' });
    one.queue.redrive();
    await one.drain(async (ctx) => seen.push(await ctx.once('charge', charge)));
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
    expect(seen).toEqual(Array(4).fill('charged'));
    expect(charge).not.toHaveBeenCalled();
  });

  test('rejects its message before it runs as number 65', async () => {
    const one = oneMessage();
    const ran = charged();
    await one.drain(async (ctx) => {
      for (let nth = 1; nth <= 64; nth += 1) await ctx.once(`mail-${nth}`, ran);
      await ctx.once('toString', ran); // every object has a property of this name
    });
    expect(ran).toHaveBeenCalledTimes(64);
    expect(one.row()).toMatchObject({ status: 'REJECTED', reason: 'TOO_MANY_EFFECTS' });
  });

  test('can be tried again as one of 64', async () => {
    const one = oneMessage();
    const charge = vi.fn(charged()).mockImplementationOnce(busy);
    await one.drain(async (ctx) => {
      for (let nth = 1; nth <= 63; nth += 1) await ctx.once(`mail-${nth}`, async () => 'sent');
      await ctx.once('charge', charge);
    });
    expect(charge).toHaveBeenCalledTimes(2);
    expect(one.row()).toMatchObject({ status: 'PROCESSED', attempts: 2 });
  });

  test('may have the name of a property that every object has', async () => {
    const one = oneMessage();
    const ran = charged();
    await one.deliver((ctx) => ctx.once('toString', ran));
    expect(ran).toHaveBeenCalledTimes(1);
    expect(one.row()).toMatchObject({
      status: 'PROCESSED',
      effects: { toString: { status: 'COMPLETED' } },
    });
  });

  test('is started and finished although each write meets a transaction on its row', async () => {
    const one = oneMessage();
    const charge = charged();
    const met = new Set<string>();
    const table = beforeWrite(one.memory, 'effects.', (action) => {
      const text = JSON.stringify(action);
      if (!met.has(text) && met.add(text)) throw awsError('TransactionConflictException');
    });
    await one.deliver(charging(charge), { table });
    expect(met.size).toBe(2);
    expect(charge).toHaveBeenCalledTimes(1);
    expect(one.row()).toMatchObject({ status: 'PROCESSED', attempts: 1 });
  });

  test.each([
    ['without a time', { endsBy: 'soon' as never }],
    ['with another status', { status: 'PAUSED' as never }],
  ])('rejects its message if its entry was written by hand, %s', async (_what, entry) => {
    const one = oneMessage();
    await one.leaveEffect(entry);
    const charge = charged();
    await one.drain(charging(charge));
    expect(charge).not.toHaveBeenCalled();
    expect(one.row()).toMatchObject({ status: 'REJECTED', reason: 'EFFECT_UNREADABLE' });
  });

  test.each([null, 7, {}, { mail: null }])(
    'that is not requested cannot fail a message by %j',
    async (effects) => {
      const one = oneMessage();
      await one.overwrite({ status: 'FAILED', fence: 'dead', attempts: 0, effects });
      await one.deliver(() => {});
      expect(one.row()).toMatchObject({ status: 'PROCESSED' });
      expect(one.telemetry.counted('TableFailures')).toBe(0);
    },
  );

  test.each([
    ['another worker holds the message', { fence: 'other' }],
    ['its message was rejected', { status: 'REJECTED' }],
    ['its message was resolved', { status: 'PROCESSED' }],
    ['its attempt was recorded as failed', { status: 'FAILED' }],
  ])('is not begun once %s', async (_what, change) => {
    const one = oneMessage();
    const charge = charged();
    await one.deliver(async (ctx) => {
      await one.overwrite(change);
      await ctx.once('charge', charge);
    });
    expect(charge).not.toHaveBeenCalled();
    expect(one.effect()).toBeUndefined();
    expect(one.row()).toMatchObject(change);
  });

  test('receives its idempotency key and the signal of its handler', async () => {
    const one = oneMessage();
    const same: boolean[] = [];
    await one.deliver((ctx) => ctx.once('charge', async (_key, signal) => same.push(signal === ctx.signal)));
    expect(same).toEqual([true]);
  });
});

describe('the result of an effect', () => {
  test.each([
    ['is not JSON', () => [{ n: 1n }], 'cannot be written as JSON: result.0.* is a bigint. Use a string'],
    ['has a secret name', () => ({ secretName: cyclic() }), 'result.*.* is part of itself.'],
    [
      'is an answer of fetch',
      () => new Response('a body'),
      'result is an instance of Response without own fields.',
    ],
    ['has a Map, which JSON would empty', () => ({ fees: new Map([['EUR', 1]]) }), 'result.* is a Map.'],
    [
      'has a time that JSON would make null',
      () => ({ at: new Date(Number.NaN) }),
      'result.* is an invalid Date.',
    ],
    ['is too long', () => 'x'.repeat(4_095), 'has 4097 bytes'],
    ['has too many bytes', () => 'é'.repeat(2_048), 'has 4098 bytes'],
  ])('rejects the message, which does not repeat the effect, if it %s', async (_what, result, why) => {
    const one = oneMessage();
    const charge = vi.fn(async () => result());
    await one.drain(charging(charge));
    expect(charge).toHaveBeenCalledTimes(1);
    expect(one.row()).toMatchObject({ status: 'REJECTED', reason: 'EFFECT_RESULT_NOT_STORABLE' });
    expect(one.row()?.lastError).toContain(why);
    expect(one.row()?.lastError).not.toContain('secretName');
    expect(one.effect()).toMatchObject({ status: 'IN_PROGRESS' }); // it has happened: not released as failed
  });

  test('does not repeat the effect for a handler that catches why it cannot be stored', async () => {
    const one = oneMessage();
    const charge = vi.fn(async () => 'x'.repeat(5_000));
    const refused: unknown[] = [];
    await one.deliver(async (ctx) => {
      for (const _ of [1, 2, 3]) refused.push(await ctx.once('charge', charge).catch(errorCode));
    });
    expect(charge).toHaveBeenCalledTimes(1);
    expect(refused).toEqual(['EFFECT_RESULT_NOT_STORABLE', 'EFFECT_REPEATED', 'EFFECT_REPEATED']);
  });
});

test.each([
  ['a text', 'done', '"done"'],
  ['an answer of fetch, which JSON would empty', new Response('done'), undefined],
  ['a value that contains itself', cyclic(), undefined],
])('what a handler returns is stored only as it is: %s', async (_what, value, stored) => {
  const one = oneMessage();
  await one.deliver(async () => value);
  expect(one.row()).toMatchObject({ status: 'PROCESSED' });
  expect(one.row()?.result).toBe(stored);
});

function cyclic(): object {
  const value: { self?: object } = {};
  value.self = value;
  return value;
}

describe('the name of an effect', () => {
  test.each([
    ...['a', 'Ship-1.of_2', '7', 'constructors', 'x'.repeat(64)].map((name) => [name, 'ran']),
    ...['x'.repeat(65), '', '-a', '.a', '_a', 'a/b', ' a', 'a ', 'größe', 'no name', 'constructor'].map(
      (name) => [name, 'BAD_EFFECT_NAME'],
    ),
  ])('can be a key or is refused: "%s" has the outcome %s', async (name = '', outcome = '') => {
    const outcomes: string[] = [];
    await oneMessage().deliver(async (ctx) =>
      outcomes.push(await ctx.once(name, async () => 'ran').catch(errorCode)),
    );
    expect(outcomes).toEqual([outcome]);
  });

  test('runs once or is refused in every microtask of its effect', async () => {
    const one = oneMessage();
    const codes: string[] = [];
    await one.deliver(async (ctx) => {
      const first = ctx.once('charge', async () => 1);
      while (!codes.includes('EFFECT_REPEATED') && codes.length < 1_000) {
        const second = ctx.once('charge', async () => 2);
        void second.then(() => codes.push('again')).catch((error: unknown) => codes.push(errorCode(error)));
        await null;
      }
      return first;
    });
    expect([...new Set(codes)]).toEqual(['EFFECT_RUNNING', 'EFFECT_REPEATED']);
    expect(one.row()?.result).toBe('1');
  });
});

describe('an effect that another worker may still be running', () => {
  test.each([
    ['waits while clocks may differ', -CLOCK_SKEW_MS, 0],
    ['runs once clocks cannot differ that much', -CLOCK_SKEW_MS - 1, 1],
  ])('%s', async (_what, endedMs, runs) => {
    const one = oneMessage();
    await one.leaveEffect({ endsBy: one.clock.now() + endedMs });
    const charge = charged();
    await one.deliver(charging(charge));
    expect(charge).toHaveBeenCalledTimes(runs);
  });

  test('returns the attempt and waits until it may be started, whatever the handler does with the error', async () => {
    const one = oneMessage();
    const endsBy = one.clock.now() + 20_000;
    await one.leaveEffect({ endsBy });
    const charge = charged();
    const codes: string[] = [];
    const handler = async (ctx: LeasedContext) => {
      try {
        await ctx.once('charge', charge);
      } catch (error) {
        codes.push(errorCode(error));
        await ctx.commit({ writes: [domainRow] }); // a handler that swallows the error gets no further
      }
    };
    await one.deliver(handler);
    expect(codes).toEqual(['EFFECT_IN_PROGRESS']);
    expect(one.row()).toMatchObject({ status: 'FAILED', attempts: 0, retryAt: one.visibleAt() });
    expect(one.visibleAt()).toBeGreaterThan(endsBy + CLOCK_SKEW_MS);
    expect(one.telemetry.counted('MessagesLeased')).toBe(1);
    expect(one.hint()).toBeUndefined();
    expect(charge).not.toHaveBeenCalled();
    await one.deliver(handler);
    expect(charge).toHaveBeenCalledTimes(1);
    expect(one.row()).toMatchObject({ status: 'PROCESSED', attempts: 1 });
  });
});

describe('an effect that its handler tries again', () => {
  const RELEASE = '":statusNow":"RELEASED"';
  const START = '"status":"IN_PROGRESS"';

  /** Tries an effect twice, and lets a write of the first try, which is not answered, land during the second. */
  async function triedTwice(abandoned: string, first: () => Promise<unknown>) {
    const one = oneMessage();
    let late: (() => Promise<unknown>) | undefined;
    const table = beforeWrite(one.memory, abandoned, (action) => {
      if (late !== undefined) return undefined;
      late = () => one.memory.write(action as Parameters<Table['write']>[0]).catch(() => {});
      return unanswered();
    });
    const second = vi.fn(async () => {
      await late?.();
      return 'charged';
    });
    await one.deliver(
      async (ctx) => {
        await ctx.once('charge', first).catch(() => {});
        await ctx.once('charge', second);
      },
      { table },
    );
    expect(late).toBeDefined();
    expect(second).toHaveBeenCalledTimes(1);
    expect(one.effect()).toMatchObject({ status: 'COMPLETED', run: 2 });
    expect(one.row()).toMatchObject({ status: 'PROCESSED', attempts: 1 });
  }

  test('starts at once although its release was lost, and is not opened by a release that lands late', () =>
    triedTwice(RELEASE, busy));

  test('is kept when the start of an earlier call is stored late', async () => {
    const first = vi.fn(busy);
    await triedTwice(START, first);
    expect(first).not.toHaveBeenCalled();
  });

  test('is not opened again by a late try of the start that it has released', async () => {
    const one = oneMessage();
    const starts: Parameters<Table['write']>[0][] = [];
    const table = beforeWrite(one.memory, START, (action) => starts.push(action as never));
    await one.deliver(
      async (ctx) => {
        await ctx.once('charge', busy).catch(() => {});
        for (const start of starts) await one.memory.write(start).catch(() => {});
      },
      { table },
    );
    expect(starts).toHaveLength(1);
    expect(one.effect()).toMatchObject({ status: 'RELEASED', run: 1 });
  });
});
