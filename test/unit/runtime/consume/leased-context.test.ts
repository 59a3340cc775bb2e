import { describe, expect, test, vi } from 'vitest';
import {
  AlreadyProcessed,
  errorCode,
  TransactionCancelled,
} from '../../../../lambdas/runtime/base/errors.ts';
import type { LeasedContext } from '../../../../lambdas/runtime/consume/handler.ts';
import { defineEvent, type Envelope } from '../../../../lambdas/runtime/events/event.ts';
import { ThingHappened } from '../../../support/runtime-rig.ts';
import { afterWrite, beforeWrite, domainRow, oneMessage, unanswered } from './consumer-rig.ts';

const OTHER = { PK: 'OTHER', SK: 'OTHER' };
const other = { Put: { Item: OTHER } };
const invalid = ThingHappened.create({ aggregateId: '', data: { n: 1 } });
const closed = async (): Promise<never> => {
  throw new Error('the bank is closed');
};
const turn = () => new Promise((resolve) => setImmediate(resolve));
const outcome = (call: Promise<unknown>) => call.then(() => 'done', errorCode);

describe('a commit', () => {
  test('writes, publishes events in the chain of its event, and sets its message PROCESSED', async () => {
    const one = oneMessage();
    await one.deliver((ctx) => ctx.commit({ writes: [domainRow], events: [one.happened(7)] }));
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
    expect(one.domainRow()).toBeDefined();
    const caused = JSON.parse(one.rows()[0]?.envelope ?? '') as Envelope;
    expect(caused).toMatchObject({
      causationId: one.event.eventId,
      correlationId: 'chain',
      data: { n: 7 },
    });
  });

  test('throws the reasons of a refused condition, which fails the message', async () => {
    const one = oneMessage();
    await one.memory.write({ Put: { Item: { PK: 'THING#1', SK: 'THING' } } });
    const errors: unknown[] = [];
    await one.deliver((ctx) =>
      ctx.commit({ writes: [domainRow] }).catch((error: unknown) => {
        errors.push(error);
        throw error;
      }),
    );
    expect(errors).toMatchObject([
      { code: 'TRANSACTION_CANCELLED', reasons: [{ code: 'ConditionalCheckFailed' }] },
    ]);
    expect(one.row()).toMatchObject({ status: 'FAILED', attempts: 1 });
  });

  test('with something else than a list of events is refused, and the handler may commit again', async () => {
    const one = oneMessage();
    const errors: unknown[] = [];
    await one.deliver(async (ctx) => {
      for (const events of [one.happened(7), Promise.resolve([one.happened(7)])])
        errors.push(await outcome(ctx.commit({ writes: [domainRow], events: events as never })));
      expect(one.row()).toMatchObject({ status: 'PROCESSING' });
      await ctx.commit({ events: [one.happened(7)] });
    });
    expect(errors).toEqual(['NO_COMMIT', 'NO_COMMIT']);
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
    expect(one.domainRow()).toBeUndefined();
    expect(one.rows()).toHaveLength(1);
  });

  test('of a lost message is refused each time, and writes nothing', async () => {
    const one = oneMessage();
    const codes: unknown[] = [];
    await one.deliver(async (ctx) => {
      await one.overwrite({ fence: 'other' });
      for (const _ of [1, 2]) codes.push(await outcome(ctx.commit({ writes: [domainRow] })));
    });
    expect(codes).toEqual(['FENCE_LOST', 'FENCE_LOST']);
    expect(one.domainRow()).toBeUndefined();
  });

  test('fails its message if the schema of an event times out: the table is not unreachable', async () => {
    const one = oneMessage();
    const validate = () => unanswered() as never;
    const schema = { '~standard': { version: 1, vendor: 'test', validate } } as const;
    const Unregistered = defineEvent({ ...ThingHappened, schema });
    const event = Unregistered.create({ aggregateId: 'thing-1', data: { n: 1 } as never });
    await one.deliver((ctx) => ctx.commit({ events: [event] }));
    expect(one.row()).toMatchObject({ status: 'FAILED', attempts: 1 });
    expect(one.telemetry.counted('TableFailures')).toBe(0);
  });

  test("to a missing table of the handler's own fails the message: the table is not unreachable", async () => {
    const one = oneMessage();
    const missing = Object.assign(new Error('Requested resource not found'), {
      name: 'ResourceNotFoundException',
    });
    const table = { ...one.memory, transact: () => Promise.reject(missing) };
    const writes = [{ Put: { TableName: 'Mistyped', Item: OTHER } }];
    await one.deliver((ctx) => ctx.commit({ writes }), { table });
    expect(one.row()).toMatchObject({ status: 'FAILED', attempts: 1 });
    expect(one.telemetry.counted('TableFailures')).toBe(0);
  });

  test('has up to 99 writes beside the inbox row', async () => {
    const one = oneMessage();
    const put = (n: number) => ({ Put: { Item: { PK: `THING#${n}`, SK: 'THING', schema: 1 } } });
    const writes = Array.from({ length: 100 }, (_, n) => put(n));
    const errors: unknown[] = [];
    await one.deliver(async (ctx) => {
      await ctx.commit({ writes }).catch((error: unknown) => errors.push(error));
      await ctx.commit({ writes: writes.slice(1) });
    });
    expect(errors).toMatchObject([
      { code: 'TRANSACTION_TOO_LARGE', message: expect.stringContaining('101 actions') },
    ]);
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
  });

  test('is the last call of its handler: another commit or effect is refused, and a later error is logged', async () => {
    const one = oneMessage();
    const codes: string[] = [];
    await one.deliver(async (ctx) => {
      await ctx.commit({ writes: [domainRow] });
      codes.push(await outcome(ctx.commit({})), await outcome(ctx.once('late', async () => 1)));
      throw new Error('after');
    });
    expect(codes).toEqual(['AFTER_COMMIT', 'AFTER_COMMIT']);
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
    expect(one.queue.messages()).toEqual([]);
    expect(one.logged()).toContainEqual(expect.stringContaining('after its commit'));
  });

  test('is refused after an earlier one that was reported as refused and happens late', async () => {
    const one = oneMessage();
    let late: (() => Promise<void>) | undefined;
    const transact: typeof one.memory.transact = async (actions) => {
      if (late !== undefined) {
        await late();
        return one.memory.transact(actions);
      }
      late = () => one.memory.transact(actions);
      throw new TransactionCancelled([{ code: 'None' }, { code: 'ConditionalCheckFailed' }]);
    };
    const ends: string[] = [];
    const handler = async (ctx: LeasedContext) => {
      for (const writes of [[domainRow], [other]]) ends.push(await outcome(ctx.commit({ writes })));
    };
    await one.deliver(handler, { table: { ...one.memory, transact } });
    expect(ends).toEqual(['TRANSACTION_CANCELLED', 'FENCE_LOST']);
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
    expect(one.memory.item(OTHER)).toBeUndefined();
  });

  test.each<[string, () => unknown]>([
    ['swallows the error', () => {}],
    [
      'reports its event as already processed',
      () => {
        throw new AlreadyProcessed('or so it seems');
      },
    ],
  ])(
    'without an answer fails the message and is tried again, although the handler %s',
    async (_does, then) => {
      const one = oneMessage();
      const commits = (ctx: LeasedContext) => ctx.commit({ writes: [domainRow] });
      await one.deliver((ctx) => commits(ctx).catch(then), {
        table: { ...one.memory, transact: unanswered },
      });
      expect(one.row()).toMatchObject({ status: 'FAILED', lastError: 'of AWS' });
      await one.drain(commits);
      expect(one.domainRow()).toBeDefined();
    },
  );

  test('whose answer was lost twice is done once', async () => {
    const one = oneMessage();
    let lost = 0;
    const table = afterWrite(one.memory, 'THING#1', () => {
      lost += 1;
      if (lost <= 2) return unanswered();
      return undefined;
    });
    const handle = vi.fn((ctx: LeasedContext) => ctx.commit({ writes: [domainRow] }));
    await one.deliver(handle, { table });
    expect(handle).toHaveBeenCalledTimes(1);
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
    expect(one.queue.messages()).toEqual([]);
  });
});

describe('a handler that ends before its calls', () => {
  type Begin = (ctx: LeasedContext, one: ReturnType<typeof oneMessage>) => unknown;

  test.each<[string, Begin, object]>([
    ['its commit', (ctx) => ctx.commit({ writes: [domainRow] }), {}],
    [
      'a commit that an effect begins',
      (ctx, one) =>
        ctx
          .once('mail', () => one.clock.sleep(1_000))
          .then(() => ctx.commit({ writes: [domainRow], events: [one.happened(1)] })),
      {},
    ],
    [
      'a commit that begins some steps after an effect',
      async (ctx) => {
        await ctx.once('charge', async () => 1);
        for (let step = 0; step < 50; step += 1) await null;
        await ctx.commit({ writes: [domainRow] });
      },
      {},
    ],
  ])('is processed after %s, however slow the table is', async (_what, begin, more) => {
    const one = oneMessage();
    const table = beforeWrite(one.memory, 'THING#1', () => one.clock.sleep(300));
    const handler = async (ctx: LeasedContext) => void begin(ctx, one);
    await one.deliver(handler, { table });
    expect(one.row()).toMatchObject({ status: 'PROCESSED', commitId: expect.any(String), ...more });
    expect(one.domainRow()).toBeDefined();
  });

  test.each<[string, Begin, string]>([
    ['a commit is refused', (ctx) => ctx.commit({ writes: [domainRow] }), 'ConditionalCheckFailed'],
    ['a commit has an invalid event', (ctx) => ctx.commit({ events: [invalid] }), 'aggregateId'],
    ['an effect fails', (ctx) => ctx.once('charge', closed), 'the bank is closed'],
    ['an effect that it chained to fails', (ctx) => ctx.once('charge', closed).then(() => {}), 'closed'],
    ['an effect with a finally fails', (ctx) => ctx.once('charge', closed).finally(() => {}), 'closed'],
    ['a chain fails', (ctx) => ctx.once('charge', async () => 1).then(closed), 'closed'],
    [
      'a commit at the end of a chain fails',
      (ctx) => ctx.once('charge', async () => 1).then(() => ctx.commit({ events: [invalid] })),
      'aggregateId',
    ],
    [
      'one of two chains fails without a catch',
      (ctx) => {
        const charge = ctx.once('charge', closed);
        charge.catch(() => {});
        return charge.then(() => {});
      },
      'closed',
    ],
    [
      'an effect fails and the handler reports its event as already processed',
      (ctx) => {
        void ctx.once('charge', closed);
        throw new AlreadyProcessed('charged before');
      },
      'the bank is closed',
    ],
    [
      'an effect fails and another one reports the event as already processed',
      (ctx) => {
        void ctx.once('look', () => Promise.reject(new AlreadyProcessed('charged before')));
        void ctx.once('charge', async () => {
          await turn();
          return closed();
        });
      },
      'the bank is closed',
    ],
  ])('fails its message, without an unhandled rejection, when %s', async (_what, begin, lastError) => {
    const one = oneMessage();
    await one.memory.write({ Put: { Item: { PK: 'THING#1', SK: 'THING' } } });
    await one.deliver(async (ctx) => {
      begin(ctx, one);
    });
    await turn();
    expect(one.row()).toMatchObject({
      status: 'FAILED',
      attempts: 1,
      lastError: expect.stringContaining(lastError),
    });
  });

  test.each<[string, (ctx: LeasedContext) => unknown, object]>([
    [
      'a lone effect that reports the event as already processed',
      (ctx) => void ctx.once('look', () => Promise.reject(new AlreadyProcessed('before'))),
      {},
    ],
    [
      'an effect whose failure it has caught',
      (ctx) => ctx.once('charge', closed).catch(() => 'not charged'),
      { result: '"not charged"' },
    ],
    [
      'an effect that it awaits after the failure',
      async (ctx) => {
        const charge = ctx.once('charge', closed);
        await turn();
        return charge.catch(() => 'not charged');
      },
      { result: '"not charged"' },
    ],
  ])('is processed after %s', async (_what, handle, more) => {
    const one = oneMessage();
    await one.deliver(handle);
    expect(one.row()).toMatchObject({ status: 'PROCESSED', ...more });
    expect(one.logged('error')).toEqual([]);
  });

  test('waits without an attempt when an un-awaited effect may still run elsewhere', async () => {
    const one = oneMessage();
    await one.leaveEffect({ endsBy: one.clock.now() + 60_000 });
    await one.deliver(async (ctx) => void ctx.once('charge', async () => 1).then(() => {}));
    expect(one.row()).toMatchObject({ status: 'FAILED', attempts: 0 });
    expect(one.telemetry.counted('MessagesFailed')).toBe(0);
  });

  test('changes nothing when an un-awaited effect finds that another worker holds the message', async () => {
    const one = oneMessage();
    await one.deliver(async (ctx) => {
      await one.overwrite({ fence: 'other' });
      void ctx.once('charge', async () => 1);
    });
    expect(one.row()).toMatchObject({ status: 'PROCESSING', fence: 'other' });
    expect(one.telemetry.counted('FenceRefused')).toBe(1);
  });

  test.each<[string, (ctx: LeasedContext, run: () => Promise<unknown>) => Promise<unknown>, string]>([
    ['an effect', (ctx, run) => ctx.once('charge', run), 'ctx.once("charge")'],
    ['a commit', (ctx) => ctx.commit({ writes: [domainRow] }), 'ctx.commit'],
  ])('is refused %s that begins after its end, which is logged once', async (_what, begin, named) => {
    const one = oneMessage();
    const run = vi.fn(async () => {});
    const codes: string[] = [];
    await one.deliver(async (ctx) => {
      void one.clock.sleep(5_000).then(() => void begin(ctx, run)); // unhandled
      void one.clock.sleep(5_000).then(async () => codes.push(await outcome(begin(ctx, run))));
    });
    await one.clock.advance(6_000);
    await turn();
    expect(codes).toEqual(['HANDLER_ENDED']);
    expect(run).not.toHaveBeenCalled();
    expect(one.domainRow()).toBeUndefined();
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
    // Once for each call.
    const line = expect.stringContaining(`${named} after its handler had returned`);
    expect(one.logged()).toEqual([line, line]);
  });

  test.each(Array.from({ length: 12 }, (_, steps) => [steps]))(
    'awaits or refuses an effect that begins %d steps after the last look at what runs',
    async (steps) => {
      const one = oneMessage();
      let running = 0;
      let begin: (() => Promise<unknown>) | undefined;
      const sleep = one.clock.sleep.bind(one.clock);
      vi.spyOn(one.clock, 'sleep').mockImplementation((ms, signal) => {
        const slept = sleep(ms, signal);
        if (ms === 0 && begin !== undefined) void slept.then(begin);
        return slept;
      });
      await one.deliver(async (ctx) => {
        begin = async () => {
          begin = undefined;
          for (let step = 0; step < steps; step += 1) await null;
          const charge = ctx.once('charge', async () => {
            running += 1;
            await one.clock.sleep(1_000);
            running -= 1;
          });
          await charge.catch(() => {});
        };
      });
      expect(begin).toBeUndefined();
      expect(running).toBe(0);
    },
  );
});

describe('a failure that cannot fail its message any more is logged', () => {
  const LOGGED = 'A call that a handler did not await has failed';

  test.each<[string, (ctx: LeasedContext) => unknown, object]>([
    [
      'a call that begins after the commit',
      async (ctx) => {
        await ctx.commit({ writes: [domainRow] });
        void ctx.once('charge', async () => 1);
      },
      {
        message: expect.stringContaining('ctx.once("charge") after ctx.commit'),
        extra: { error: { code: 'AFTER_COMMIT' } },
      },
    ],
    [
      'a chain that begins after the commit',
      async (ctx) => {
        const done = ctx.commit({ writes: [domainRow] });
        void done.then(closed);
        await done;
      },
      { message: LOGGED, extra: { error: { message: 'the bank is closed' } } },
    ],
  ])('when it is that of %s', async (_what, begin, line) => {
    const one = oneMessage();
    await one.deliver(async (ctx) => {
      await begin(ctx);
    });
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
    expect(one.telemetry.lines().filter(({ level }) => level === 'error')).toMatchObject([line]);
  });

  test('when it happens after the message is settled', async () => {
    const one = oneMessage();
    let fail: (error: Error) => void = () => {};
    const later = new Promise<never>((_resolve, reject) => {
      fail = reject;
    });
    await one.deliver(async (ctx) => void ctx.once('charge', async () => 1).then(() => later));
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
    expect(one.logged('error')).toEqual([]);
    fail(new Error('too late'));
    await turn();
    expect(one.logged('error')).toEqual([LOGGED]);
  });
});
