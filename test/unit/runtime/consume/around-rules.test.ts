import { describe, expect, test } from 'vitest';
import { AlreadyProcessed, errorCode, PoisonMessage } from '../../../../lambdas/runtime/base/errors.ts';
import type { Around } from '../../../../lambdas/runtime/consume/around.ts';
import { leased } from '../../../../lambdas/runtime/consume/handler.ts';
import type { Item } from '../../../../lambdas/runtime/store/table.ts';
import { consumerConfig, ThingHappened } from '../../../support/runtime-rig.ts';
import { closed, codes, handlerOf, inside, KINDS, turn, write } from './around-rig.ts';
import { inboxRow } from './consumer-rig.ts';

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

describe('a handler whose message this worker has given back while the function around it waited', () => {
  /** A function that waits until `open` is called. */
  function waiting() {
    let open = () => {};
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    const around: Around = async (_run, next) => {
      await opened;
      await next();
    };
    return { around, open };
  }

  const turns = async () => {
    for (let i = 0; i < 20; i += 1) await turn();
  };

  test.each(KINDS)('does not start when its time was up: %s', async (kind) => {
    const runs: string[] = [];
    const { around, open } = waiting();
    const one = inside(around, [handlerOf(kind, runs)]);
    await one.deliver();
    expect(one.end()).toMatchObject({ wrote: false, waits: 1 });
    open();
    await turns();
    expect(runs).toEqual([]);
    expect(one.end()).toMatchObject({ wrote: false, waits: 1 });
  });

  test('does not start when another worker has taken it', async () => {
    const runs: string[] = [];
    const { around, open } = waiting();
    const one = inside(around, [handlerOf('leased', runs)]);
    const delivered = one.deliver();
    await turns();
    const row = inboxRow(one, one.event);
    await one.memory.write({ Put: { Item: { ...(row as Item), fence: 'another' } } });
    const renewed = Number(row?.claimedAt) + consumerConfig.leaseMs / 2;
    while (one.clock.now() < renewed) await turn();
    open();
    await delivered;
    expect(runs).toEqual([]);
    expect(inboxRow(one, one.event)).toMatchObject({ status: 'PROCESSING', fence: 'another' });
  });
});

describe('no error is lost', () => {
  const failure = new Error('the ledger is closed');

  test.each(['leased', 'transactional', 'batch'])(
    'the one of a handler is the cause of the broken rule: %s',
    async (kind) => {
      const one = inside(
        async (_run, next) => {
          await next().catch(() => {});
          await next().catch(() => {});
        },
        [handlerOf(kind, [], () => Promise.reject(failure))],
      );
      await one.deliver();
      expect(errorsOf(one, 'error')).toContainEqual(
        expect.objectContaining({ code: 'BAD_AROUND', cause: failure }),
      );
    },
  );

  test('the refusal of a commit is not its own cause', async () => {
    const one = inside(
      async (_run, next) => void next(),
      [
        leased(ThingHappened, async (_, ctx) => {
          await turn();
          await ctx.commit(write).catch((cause: unknown) => {
            throw new Error('not committed', { cause });
          });
        }),
      ],
    );
    await one.deliver();
    expect(errorsOf(one, 'error')).toContainEqual(
      expect.objectContaining({ code: 'NOT_AWAITED', cause: undefined }),
    );
  });

  test.each(['leased', 'transactional', 'batch'])(
    'the one of the function is logged beside that of its handler: %s',
    async (kind) => {
      for (const thrown of [failure, new AlreadyProcessed('before')]) {
        const one = inside(
          async (_run, next) => {
            try {
              await next();
            } finally {
              closed();
            }
          },
          [handlerOf(kind, [], () => Promise.reject(thrown))],
        );
        await one.deliver();
        expect(errorsOf(one, 'warn')).toContainEqual(
          expect.objectContaining({ message: 'the bank is closed' }),
        );
        expect(one.end().waits).toBe(thrown === failure ? 1 : 0);
      }
    },
  );
});

/** The errors of the log lines of a level. */
function errorsOf({ telemetry }: Pick<ReturnType<typeof inside>, 'telemetry'>, level: string): unknown[] {
  return telemetry
    .lines()
    .filter((line) => line.level === level)
    .map(({ extra }) => (extra as { error?: unknown } | undefined)?.error);
}
