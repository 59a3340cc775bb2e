import { tracingChannel } from 'node:diagnostics_channel';
import { inspect } from 'node:util';
import { describe, expect, test, vi } from 'vitest';
import { AlreadyProcessed, errorCode, PoisonMessage } from '../../../../lambdas/runtime/base/errors.ts';
import type { LeasedContext } from '../../../../lambdas/runtime/consume/handler.ts';
import { ThingHappened } from '../../../support/runtime-rig.ts';
import { domainRow, oneMessage } from './consumer-rig.ts';

const closed = async (): Promise<never> => {
  throw new Error('the bank is closed');
};
const invalid = ThingHappened.create({ aggregateId: '', data: { n: 1 } });
const turn = () => new Promise((resolve) => setImmediate(resolve));
const write = { writes: [domainRow] };
const outcome = (call: Promise<unknown>) => call.then(() => 'done', errorCode);

type Handle = (ctx: LeasedContext, one: ReturnType<typeof oneMessage>) => unknown;

describe('a commit is refused, and its message fails,', () => {
  test.each<[string, Handle, string]>([
    [
      'while an effect is under way',
      (ctx, { clock }) => void ctx.once('charge', () => clock.sleep(2_000)),
      'ctx.once("charge") is not awaited',
    ],
    [
      'while an effect with a listener is under way',
      (ctx, { clock }) => void ctx.once('charge', () => clock.sleep(2_000)).catch(() => {}),
      'ctx.once("charge") is not awaited',
    ],
    [
      'while an effect that lost a race is under way',
      (ctx, { clock }) => Promise.race([ctx.once('charge', () => clock.sleep(2_000)), turn()]),
      'ctx.once("charge") is not awaited',
    ],
    [
      'while one effect of several is under way',
      (ctx, { clock }) => void ctx.onceEach('ship', ['a', 'b'], () => clock.sleep(2_000)),
      'ctx.onceEach("ship") is not awaited',
    ],
    [
      'after an effect whose failure the handler has not seen',
      async (ctx) => {
        void ctx.once('charge', closed);
        await turn();
      },
      'ctx.once("charge") has failed and was not awaited',
    ],
    [
      'after an effect that was logged, and whose failure the handler has not seen',
      async (ctx) => {
        inspect(ctx.once('charge', closed));
        await turn();
      },
      'ctx.once("charge") has failed and was not awaited',
    ],
    [
      'after a failure in a chain that the handler has not seen',
      async (ctx) => {
        void ctx.once('charge', async () => 1).then(closed);
        await turn();
      },
      'ctx.once("charge") has failed and was not awaited',
    ],
    [
      'after another commit whose refusal the handler has not seen',
      async (ctx) => {
        void ctx.commit({ events: [invalid] });
        await turn();
      },
      'ctx.commit has failed and was not awaited',
    ],
  ])('%s', async (_what, begin, problem) => {
    const one = oneMessage();
    await one.deliver(async (ctx) => {
      await begin(ctx, one);
      await ctx.commit(write);
    });
    await turn();
    expect(one.row()).toMatchObject({
      status: 'FAILED',
      attempts: 1,
      lastError: expect.stringContaining(`ctx.commit is refused: ${problem}.`),
    });
    expect(one.domainRow()).toBeUndefined();
  });

  test.each<[string, (ctx: LeasedContext) => Promise<unknown>]>([
    ['an effect', (ctx) => ctx.once('charge', async () => 1)],
    ['another commit', (ctx) => ctx.commit({})],
  ])('if %s is called before it is sent', async (_what, call) => {
    const one = oneMessage();
    let codes: string[] = [];
    await one.deliver(async (ctx) => {
      codes = await Promise.all([outcome(ctx.commit(write)), outcome(call(ctx))]);
    });
    expect(codes).toEqual(['NOT_AWAITED', 'AFTER_COMMIT']);
    expect(one.domainRow()).toBeUndefined();
    expect(one.row()).toMatchObject({ status: 'FAILED', attempts: 1 });
  });
});

test('the work of a commit beside an effect is not run', async () => {
  const one = oneMessage();
  const work = vi.fn(async () => write);
  await one.deliver(async (ctx) => {
    void ctx.once('charge', turn);
    await ctx.commit(work as never); // as with a transaction in PostgreSQL
  });
  expect(work).not.toHaveBeenCalled();
});

describe('after such a refusal, the message fails although its handler', () => {
  test.each<[string, Handle]>([
    ['returns', () => 'done'],
    ['commits again', (ctx) => ctx.commit(write)],
    [
      'commits again after the effect has ended',
      (ctx, { clock }) => clock.sleep(3_000).then(() => ctx.commit(write)),
    ],
    ['reports its event as already processed', () => Promise.reject(new AlreadyProcessed('charged before'))],
    ['runs another effect', (ctx) => ctx.once('mail', async () => 1)],
    ['throws another error', () => Promise.reject(new Error('something else'))],
  ])('%s', async (_what, end) => {
    const one = oneMessage();
    const mail = vi.fn();
    await one.deliver(async (ctx) => {
      void ctx.once('charge', () => one.clock.sleep(2_000));
      await ctx.commit(write).catch(() => {});
      const call = ctx.once('mail', mail);
      expect(await outcome(call)).toBe('NOT_AWAITED');
      await end(ctx, one);
    });
    expect(one.row()).toMatchObject({
      status: 'FAILED',
      attempts: 1,
      lastError: expect.stringContaining('ctx.commit is refused: '),
      effects: { charge: { status: 'COMPLETED' } },
    });
    expect(mail).not.toHaveBeenCalled();
    expect(one.domainRow()).toBeUndefined();
  });
});

test('a handler may reject its message after such a refusal', async () => {
  const one = oneMessage();
  await one.deliver(async (ctx) => {
    void ctx.once('charge', closed);
    await ctx.commit(write).catch(() => Promise.reject(new PoisonMessage('It never works.')));
  });
  expect(one.row()).toMatchObject({ status: 'REJECTED', reason: 'POISON_MESSAGE' });
});

test('a handler that is still running after such a refusal when its time is up keeps its lease', async () => {
  const one = oneMessage();
  await one.deliver(async (ctx) => {
    void ctx.once('charge', turn);
    await ctx.commit(write).catch(() => {});
    await new Promise(() => {});
  });
  expect(one.row()).toMatchObject({ status: 'PROCESSING', outOfTime: true });
});

test('a message whose handler never awaits its effect is rejected with that cause, and nothing is committed', async () => {
  const one = oneMessage();
  await one.drain(async (ctx) => {
    void ctx.once('charge', closed);
    await ctx.commit(write);
  });
  expect(one.row()).toMatchObject({
    status: 'REJECTED',
    reason: 'ATTEMPTS_EXHAUSTED',
    lastError: expect.stringContaining(
      'NOT_AWAITED: ctx.commit is refused: ctx.once("charge") is not awaited.',
    ),
  });
  expect(one.domainRow()).toBeUndefined();
});

describe('a commit is allowed', () => {
  test.each<[string, Handle]>([
    [
      'after an un-awaited effect that has succeeded',
      async (ctx) => {
        void ctx.once('charge', async () => 1);
        await turn();
      },
    ],
    ['after a failure that its handler has caught', (ctx) => ctx.once('charge', closed).catch(() => {})],
    ['after failures among settled effects', (ctx) => Promise.allSettled([ctx.once('charge', closed)])],
    [
      'after a failure that its handler awaits later',
      async (ctx) => {
        const charge = ctx.once('charge', closed);
        await turn();
        await charge.catch(() => {});
      },
    ],
    [
      'after a caught failure of an effect that an instrumentation has traced',
      async (ctx) => {
        const channel = tracingChannel('charges');
        channel.error.subscribe(() => {});
        await channel.tracePromise(() => ctx.once('charge', closed), {}).catch(() => {});
      },
    ],
    ['directly after several effects', (ctx) => Promise.all(['a', 'b'].map((name) => ctx.once(name, turn)))],
  ])('%s', async (_what, begin) => {
    const one = oneMessage();
    await one.deliver(async (ctx) => {
      await begin(ctx, one);
      await ctx.commit(write);
    });
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
    expect(one.domainRow()).toBeDefined();
  });
});

describe('an effect that fails after its handler has ended fails the message', () => {
  const listened: [string, Handle][] = [
    [
      'although it has a listener',
      (ctx) => void ctx.once('charge', () => turn().then(closed)).catch(() => {}),
    ],
    [
      'although it lost a race',
      (ctx) => Promise.race([ctx.once('charge', () => turn().then(turn).then(closed)), 1]),
    ],
  ];

  test.each(listened)('%s', async (_what, begin) => {
    const one = oneMessage();
    await one.deliver(async (ctx) => void (await begin(ctx, one)));
    expect(one.row()).toMatchObject({
      status: 'FAILED',
      lastError: expect.stringContaining('the bank is closed'),
    });
  });

  test.each(listened)('%s, and its handler reports the event as already processed', async (_what, begin) => {
    const one = oneMessage();
    await one.deliver(async (ctx) => {
      await begin(ctx, one);
      throw new AlreadyProcessed('charged before');
    });
    expect(one.row()).toMatchObject({
      status: 'FAILED',
      lastError: expect.stringContaining('the bank is closed'),
    });
  });
});
