import { describe, expect, test } from 'vitest';
import { errorCode } from '../../../../lambdas/runtime/base/errors.ts';
import { CONSUMER, domainRow, oneMessage } from './consumer-rig.ts';

const SKUS = ['a', 'b', 'c', 'd'];

describe('ctx.onceEach', () => {
  test('runs an effect per item under stable keys, and returns the results in order', async () => {
    const one = oneMessage();
    const keys: string[] = [];
    const results: unknown[] = [];
    await one.drain(async (ctx) => {
      results.push(
        await ctx.onceEach('ship', SKUS, async (sku, key) => {
          keys.push(key);
          return { sku };
        }),
      );
      if (ctx.attempt < 2) throw new Error('later step failed');
      await ctx.commit({ writes: [domainRow] });
    });
    expect(keys).toEqual(SKUS.map((sku) => `${CONSUMER}:${one.event.eventId}:ship.${sku}`));
    expect(results).toEqual(Array(2).fill(SKUS.map((sku) => ({ sku }))));
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
  });

  test('runs at most the given number of effects at a time', async () => {
    const one = oneMessage();
    let running = 0;
    const most: number[] = [];
    await one.deliver(async (ctx) => {
      await ctx.onceEach(
        'ship',
        SKUS.map((sku) => ({ sku })),
        async () => {
          running += 1;
          most.push(running);
          await new Promise(setImmediate);
          running -= 1;
        },
        { key: ({ sku }) => sku, concurrency: 3 },
      );
    });
    expect(Math.max(...most)).toBe(3);
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
  });

  test('starts none after a failure, awaits those that run, and runs only the rest in the next attempt', async () => {
    const one = oneMessage();
    const ran: string[] = [];
    const failing = new Set(['b']);
    await one.drain(async (ctx) => {
      await ctx.onceEach(
        'ship',
        SKUS,
        async (sku) => {
          ran.push(sku);
          if (failing.delete(sku)) throw new Error('carrier answered 500');
          await new Promise(setImmediate);
        },
        { concurrency: 2 },
      );
    });
    expect(ran).toEqual(['a', 'b', 'b', 'c', 'd']);
    expect(one.row()).toMatchObject({ status: 'PROCESSED', attempts: 2 });
  });

  test('returns the results in the order of the items, and throws the first failure, whatever ends first', async () => {
    const one = oneMessage();
    const ends: unknown[] = [];
    const inReverse = (effect: (sku: string) => string) => async (sku: string) => {
      await one.clock.sleep(1_000 * (SKUS.length - SKUS.indexOf(sku)));
      return effect(sku);
    };
    const fails = inReverse((sku) => {
      throw new Error(`carrier refused ${sku}`);
    });
    await one.deliver(async (ctx) => {
      const options = { concurrency: SKUS.length };
      ends.push(
        await ctx.onceEach(
          'ship',
          SKUS,
          inReverse((sku) => sku),
          options,
        ),
      );
      await ctx.onceEach('bill', SKUS, fails, options).catch(({ message }: Error) => ends.push(message));
    });
    expect(ends).toEqual([SKUS, 'carrier refused d']);
  });

  test('an un-awaited failure fails the message', async () => {
    const one = oneMessage();
    await one.deliver(async (ctx) => {
      void ctx.onceEach('ship', SKUS, async () => Promise.reject(new Error('carrier answered 500')));
    });
    expect(one.row()).toMatchObject({ status: 'FAILED', lastError: 'carrier answered 500' });
  });

  test.each<[string, unknown[], object, string, RegExp]>([
    [
      'an object without a key',
      [{ sku: 'a' }],
      {},
      'BAD_EFFECT_NAME',
      /item 0 is neither a string nor a number/,
    ],
    [
      'a key that is not part of a name',
      ['a', 'b c'],
      {},
      'BAD_EFFECT_NAME',
      /item 1 makes the effect name "ship.b c"/,
    ],
    ['a key that is too long', ['x'.repeat(64)], {}, 'BAD_EFFECT_NAME', /use 1 to 64 letters/],
    ['two items with one key', ['a', 'a'], {}, 'EFFECT_REPEATED', /two items make the effect name "ship.a"/],
    [
      'a key that is neither a string nor a number',
      [{ sku: undefined }],
      { key: ({ sku }: { sku: unknown }) => sku },
      'BAD_EFFECT_NAME',
      /the key of item 0 is neither a string nor a number/,
    ],
    [
      'an item that is not a number',
      [Number.NaN],
      {},
      'BAD_EFFECT_NAME',
      /item 0 is neither a string nor a number/,
    ],
    ['a text in place of a list', 'abc' as never, {}, 'BAD_ARGUMENT', /items is a string; pass a list/],
    ['a concurrency of 0', ['a'], { concurrency: 0 }, 'BAD_ARGUMENT', /concurrency is 0/],
    [
      'more items than a row stores effects',
      [...Array(65).keys()],
      {},
      'TOO_MANY_EFFECTS',
      /has 65 items, and its message would have 65 effects/,
    ],
  ])('refuses %s before any effect starts', async (_, items, options, code, text) => {
    const one = oneMessage();
    const errors: unknown[] = [];
    const ran: unknown[] = [];
    await one.deliver(async (ctx) => {
      await ctx
        .onceEach('ship', items, async (item) => ran.push(item), options)
        .catch((error) => errors.push(error));
    });
    expect(ran).toEqual([]);
    expect(errors).toHaveLength(1);
    expect(errorCode(errors[0])).toBe(code);
    expect((errors[0] as Error).message).toMatch(text);
  });

  test('counts the effects that the row already has', async () => {
    const one = oneMessage();
    const errors: unknown[] = [];
    await one.deliver(async (ctx) => {
      await ctx.once('charge', async () => {});
      await ctx.onceEach('ship', Array(64).keys(), async () => {}).catch((error) => errors.push(error));
    });
    expect(String(errors[0])).toMatch(/has 64 items, and its message would have 65 effects/);
  });

  test('returns nothing for no items', async () => {
    const one = oneMessage();
    await one.deliver(async (ctx) => {
      expect(await ctx.onceEach('ship', [], async () => 1)).toEqual([]);
    });
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
  });
});
