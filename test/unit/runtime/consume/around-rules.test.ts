import { describe, expect, test } from 'vitest';
import { AlreadyProcessed, errorCode, PoisonMessage } from '../../../../lambdas/runtime/base/errors.ts';
import type { Around } from '../../../../lambdas/runtime/consume/around.ts';
import { leased } from '../../../../lambdas/runtime/consume/handler.ts';
import { ThingHappened } from '../../../support/runtime-rig.ts';
import { closed, codes, handlerOf, inside, turn, write } from './around-rig.ts';

/** Rules that are broken while the handler runs. */
const BESIDE: [string, Around, string][] = [
  [
    'a second call of next while the handler runs',
    async (_run, next) => {
      await Promise.allSettled([next(), next()]);
    },
    'BAD_AROUND',
  ],
  ['next that is not awaited', async (_run, next) => void next(), 'NOT_AWAITED'],
  ['next that lost a race', async (_run, next) => void (await Promise.race([next(), 1])), 'NOT_AWAITED'],
  [
    'an error beside next',
    (_run, next) => {
      void next();
      return Promise.reject(new AlreadyProcessed('no'));
    },
    'NOT_AWAITED',
  ],
];

/** And when it has ended. */
const AFTER: [string, Around, string][] = [
  [
    'a second call of next',
    async (_run, next) => {
      await next();
      await next().catch(() => {});
    },
    'BAD_AROUND',
  ],
  [
    'next that is not awaited, although the handler has ended',
    async (_run, next) => {
      void next();
      for (let i = 0; i < 5; i += 1) await turn();
    },
    'NOT_AWAITED',
  ],
  [
    'an error after next',
    async (_run, next) => {
      await next();
      closed();
    },
    'Error',
  ],
  [
    'AlreadyProcessed after next',
    async (_run, next) => {
      await next();
      throw new AlreadyProcessed('by me');
    },
    'BAD_AROUND',
  ],
];

describe.each([...BESIDE, ...AFTER])('%s', (_what, around, code) => {
  test.each(['leased', 'transactional', 'batch'])('fails the message before its commit: %s', async (kind) => {
    const runs: string[] = [];
    const one = inside(around, [handlerOf(kind, runs, turn)]);
    for (const attempt of [1, 2]) {
      await one.deliver();
      expect(runs).toHaveLength(attempt);
      expect(codes(one)).toContain(code);
      expect(one.end()).toMatchObject({ wrote: false, waits: 1 });
      await one.clock.advance(150_000);
    }
    expect(one.end()).toMatchObject({ status: 'FAILED' });
  });
});

test.each(BESIDE)('%s: a leased handler starts and commits nothing more', async (_what, around, code) => {
  const refused: unknown[] = [];
  const charged: string[] = [];
  const refusal = (error: unknown) => void refused.push(errorCode(error));
  const one = inside(around, [
    leased(ThingHappened, async (_, ctx) => {
      await turn();
      await ctx.once('charge', async () => charged.push('charge')).catch(refusal);
      await ctx.commit(write).catch(refusal);
    }),
  ]);
  await one.deliver();
  expect(refused).toEqual([code, code]);
  expect(charged).toEqual([]);
  expect(one.end()).toMatchObject({ status: 'FAILED', attempts: 1, wrote: false });
});

test.each(AFTER)(
  '%s: the commit of a leased handler stands, and the error is logged',
  async (_what, around, code) => {
    const one = inside(around, [handlerOf('leased, with a commit', [])]);
    await one.deliver();
    expect(one.end()).toMatchObject({ status: 'PROCESSED', wrote: true, waits: 0 });
    expect(codes(one)).toContain(code);
  },
);

test('poison of the handler rejects its message, whatever rule its function breaks', async () => {
  const one = inside(
    async (_run, next) => void next(),
    [handlerOf('leased', [], () => Promise.reject(new PoisonMessage('never')))],
  );
  await one.deliver();
  expect(one.end()).toMatchObject({ status: 'REJECTED' });
});

test('an effect that fails after its handler has returned fails the message, also while the function around it continues', async () => {
  let fail = () => {};
  const one = inside(
    async (_run, next) => {
      await next();
      fail();
      for (let i = 0; i < 5; i += 1) await turn();
    },
    [
      leased(ThingHappened, async (_, ctx) => {
        const effect = new Promise<never>((_resolve, reject) => {
          fail = () => reject(new Error('the bank is closed'));
        });
        void ctx.once('charge', () => effect).catch(() => {});
        await turn();
      }),
    ],
  );
  await one.deliver();
  expect(one.end()).toMatchObject({
    status: 'FAILED',
    lastError: expect.stringContaining('the bank is closed'),
  });
});
