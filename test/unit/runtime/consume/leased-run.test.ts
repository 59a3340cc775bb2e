import { describe, expect, test, vi } from 'vitest';
import { CLOCK_SKEW_MS } from '../../../../lambdas/runtime/base/clock.ts';
import { errorCode, RetryLater } from '../../../../lambdas/runtime/base/errors.ts';
import { type LeasedContext, leased, transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import { lambdaContext } from '../../../../testing/index.ts';
import { ThingHappened } from '../../../support/runtime-rig.ts';
import {
  afterWrite,
  awsError,
  beforeWrite,
  consumer,
  domainRow,
  oneMessage,
  throttled,
  unanswered,
} from './consumer-rig.ts';

type OneMessage = ReturnType<typeof oneMessage>;

const RENEWAL = '"SET leaseUntil = :leaseUntil"';
const MARK = 'outOfTime = :outOfTime';
const CLAIM = 'claimedAt';
const forever = () => new Promise<never>(() => {});

describe('a renewal', () => {
  /** Runs a handler for 35 s. @returns the times of the renewals and for how long each hid the message, in seconds */
  async function renewals(
    change: { readonly leaseMs?: number; readonly visibilityTimeoutMs?: number },
    renew: () => unknown = () => {},
    handle: (ctx: LeasedContext) => unknown = () => {},
  ) {
    const one = oneMessage();
    const startedAt = one.clock.now();
    const times: number[] = [];
    const table = beforeWrite(one.memory, RENEWAL, () => {
      times.push((one.clock.now() - startedAt) / 1_000);
      return renew();
    });
    const hide = vi.spyOn(one.queue, 'changeVisibility');
    const handler = async (ctx: LeasedContext) => {
      await handle(ctx);
      await one.clock.sleep(35_000);
    };
    await one.deliver(handler, { table, timeoutMs: 200_000, ...change });
    return { times, hidden: hide.mock.calls.map(([, seconds]) => seconds), one };
  }

  test.each([
    [30_000, 60_000, [60, 60, 60]],
    [60_000, 30_000, [30, 30, 30]],
    [30_000, 0, [1, 1, 1]],
  ])(
    'happens every 10 s with a lease of %d ms and a visibility timeout of %d ms, and hides the message for %j s',
    async (leaseMs, visibilityTimeoutMs, seconds) => {
      const { times, hidden } = await renewals({ leaseMs, visibilityTimeoutMs });
      expect(times).toEqual([10, 20, 30]);
      expect(hidden).toEqual(seconds);
    },
  );

  test('that fails is logged, and the next one tries again', async () => {
    const { times, one } = await renewals({}, throttled);
    expect(times).toEqual([10, 20, 30]);
    expect(one.logged()).toEqual(Array(3).fill('A lease renewal failed; the next one tries again'));
  });

  test('does not happen after the commit', async () => {
    const { times } = await renewals({}, undefined, (ctx) => ctx.commit({ writes: [domainRow] }));
    expect(times).toEqual([]);
  });

  test('keeps a message hidden and leased that takes longer than its lease and its visibility timeout', async () => {
    const one = oneMessage();
    let second = 0;
    const handler = async () => {
      for (let i = 0; i < 10; i += 1) {
        await one.clock.sleep(10_000);
        second += one.queue.receive().length;
      }
    };
    await one.deliver(handler, { timeoutMs: 200_000 });
    expect(second).toBe(0);
    expect(one.row()).toMatchObject({ status: 'PROCESSED', attempts: 1 });
    expect(one.queue.messages()).toEqual([]);
  });

  test('leases and hides a message no longer than until its function is stopped', async () => {
    const one = oneMessage();
    const endsBy = one.clock.now() + 20_000;
    const leases: unknown[] = [];
    const handler = async () => {
      leases.push(one.row()?.leaseUntil);
      await one.clock.sleep(17_000);
      leases.push(one.row()?.leaseUntil); // renewed
      expect(one.visibleAt()).toBeGreaterThanOrEqual(endsBy);
      expect(one.visibleAt()).toBeLessThan(endsBy + 3_000);
    };
    await one.deliver(handler, { timeoutMs: 20_000, leaseMs: 30_000 });
    expect(leases).toEqual([endsBy, endsBy]);
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
  });

  test('that is refused aborts the handler, which has lost its message and can write nothing', async () => {
    const one = oneMessage();
    let reason: unknown;
    const handler = async (ctx: LeasedContext) => {
      await one.overwrite({ fence: 'other', leaseUntil: one.clock.now() + 100_000 });
      ctx.signal.addEventListener('abort', () => {
        reason = ctx.signal.reason;
      });
      await one.clock.sleep(15_000);
      await ctx.commit({ writes: [domainRow] });
    };
    const { failed } = await one.deliver(handler, { timeoutMs: 60_000 });
    expect(failed).toHaveLength(1);
    expect(reason).toMatchObject({ code: 'FENCE_LOST' });
    expect(one.logged().filter((message) => message.includes('renewal'))).toEqual([]);
    expect(one.domainRow()).toBeUndefined();
    expect(one.row()).toMatchObject({ status: 'PROCESSING', fence: 'other' });
  });

  test.each([
    [300_000, 11_500],
    [15_000, 11_500],
    [12_000, 10_875],
  ])(
    'that hangs delays the end of its message little, in a function of %d ms',
    async (timeoutMs, endsAfterMs) => {
      const one = oneMessage();
      const startedAt = one.clock.now();
      const table = beforeWrite(one.memory, RENEWAL, () => one.clock.sleep(18_000));
      await one.deliver(() => one.clock.sleep(10_500), { table, timeoutMs });
      expect(one.clock.now() - startedAt).toBeGreaterThanOrEqual(endsAfterMs);
      expect(one.clock.now() - startedAt).toBeLessThan(endsAfterMs + 100);
      expect(one.row()).toMatchObject({ status: 'PROCESSED' });
    },
  );

  test('that is answered after its run does not hide the message, which is visible when its retry is due', async () => {
    const one = oneMessage();
    const table = afterWrite(one.memory, RENEWAL, () => one.clock.sleep(18_000));
    const hides = vi.spyOn(one.queue, 'changeVisibility');
    const handler = async () => {
      await one.clock.sleep(10_500);
      throw new RetryLater(0);
    };
    await one.deliver(handler, { table, timeoutMs: 30_000 });
    await one.clock.advance(18_000);
    expect(hides.mock.calls.map(([, seconds]) => seconds)).toEqual([0]);
  });

  test('that is hiding the message is awaited, so that the delay of the retry is set last', async () => {
    const one = oneMessage();
    const change = one.queue.changeVisibility.bind(one.queue);
    const hides = vi.spyOn(one.queue, 'changeVisibility').mockImplementationOnce(async (...args) => {
      await one.clock.sleep(500);
      await change(...args);
    });
    await one.deliver(async () => {
      await one.clock.sleep(10_100);
      throw new Error('bank answered 503');
    });
    await one.clock.advance(1_000);
    expect(hides).toHaveBeenCalledTimes(2);
    expect(one.visibleAt()).toBe(one.row()?.retryAt);
  });

  test('leaves no timer behind after the end of its run', async () => {
    const one = oneMessage();
    const startedAt = one.clock.now();
    await one.deliver(() => {});
    expect(one.clock.now() - startedAt).toBeLessThan(500);
    expect(one.clock.sleeping()).toBe(0);
  });
});

test.each([
  ['leased', leased],
  ['transactional', transactional],
])(
  'a batch is answered before its function is stopped, however long a %s handler takes',
  async (_kind, kind) => {
    const one = oneMessage();
    const startedAt = one.clock.now();
    const { failed } = await one.deliver(kind(ThingHappened, forever), { timeoutMs: 20_000 });
    expect(failed).toHaveLength(1);
    expect(one.clock.now() - startedAt).toBeLessThan(20_000);
  },
);

describe('a handler that is still running when the time of its function is up', () => {
  test('keeps its lease, and its message waits until the function has certainly stopped', async () => {
    const one = oneMessage();
    const endsBy = one.clock.now() + 20_000;
    await one.deliver(forever, { timeoutMs: 20_000, retryFirstMs: 1_000 });
    expect(one.row()).toMatchObject({ status: 'PROCESSING', endsBy, outOfTime: true });
    expect(one.visibleAt()).toBeGreaterThan(endsBy + CLOCK_SKEW_MS);
    expect(one.visibleAt()).toBeLessThan(endsBy + 4_001);
  });

  test('keeps its lease also after a commit without an answer', async () => {
    const one = oneMessage();
    const endsBy = one.clock.now() + 30_000;
    const handler = async (ctx: LeasedContext) => {
      await ctx.commit({ writes: [domainRow] }).catch(() => {});
      await forever();
    };
    await one.deliver(handler, { table: { ...one.memory, transact: unanswered } });
    expect(one.row()).toMatchObject({ status: 'PROCESSING', endsBy, outOfTime: true });
    expect(one.visibleAt()).toBeGreaterThan(endsBy + CLOCK_SKEW_MS);
  });

  test('is stopped with its function, and the batch not answered, while one of its effects runs', async () => {
    const one = oneMessage();
    let answered = false;
    const { handle } = consumer(one, [
      leased(ThingHappened, (_event, ctx) => ctx.once('charge', () => one.clock.sleep(1_000_000))),
    ]);
    const context = lambdaContext({ clock: one.clock, timeoutMs: 20_000 });
    void handle({ Records: one.queue.receive() }, context).finally(() => {
      answered = true;
    });
    await one.clock.advance(20_000); // Lambda stops it here
    expect(answered).toBe(false);
    expect(one.row()).toMatchObject({ status: 'PROCESSING' });
  });

  test('is aborted a second before the end, before the row is marked, and can start nothing more', async () => {
    const one = oneMessage();
    const startedAt = one.clock.now();
    const charge = vi.fn();
    const seen: unknown[] = [];
    const handler = async (ctx: LeasedContext) => {
      ctx.signal.addEventListener('abort', async () => {
        seen.push(one.clock.now() - startedAt);
        seen.push(await ctx.once('charge', charge).catch(errorCode));
        seen.push(await ctx.commit({ writes: [domainRow] }).catch(errorCode));
      });
      await one.clock.sleep(40_000);
      seen.push(ctx.remainingMs());
      seen.push(await ctx.once('charge', charge).catch(errorCode));
      seen.push(await ctx.commit({ writes: [domainRow] }).catch(errorCode));
    };
    await one.deliver(handler, { table: beforeWrite(one.memory, MARK, () => one.clock.sleep(200)) });
    expect(seen).toEqual([29_000, 'OUT_OF_TIME', 'OUT_OF_TIME']);
    expect(one.row()).toMatchObject({ status: 'PROCESSING', outOfTime: true });
    await one.clock.advance(20_000);
    expect(seen.slice(3)).toEqual([0, 'HANDLER_ENDED', 'HANDLER_ENDED']);
    expect(charge).not.toHaveBeenCalled();
    expect(one.domainRow()).toBeUndefined();
  });

  test.each([
    ['is not logged if it is awaited', async (call: Promise<unknown>) => call.catch(() => {}), 0],
    ['is logged if it is not awaited', async () => {}, 1],
  ])('can have a call that fails later, which %s', async (_what, look, logged) => {
    const one = oneMessage();
    const transact = async () => {
      await one.clock.sleep(40_000);
      throw awsError('ValidationException');
    };
    const handler = async (ctx: LeasedContext) => {
      await look(ctx.commit({ writes: [domainRow] }));
      await forever();
    };
    await one.deliver(handler, { table: { ...one.memory, transact } });
    await one.clock.advance(20_000);
    expect(one.logged().filter((message) => message.includes('did not await'))).toHaveLength(logged);
  });

  test.each<[string, (one: OneMessage) => unknown, string[]]>([
    [
      'refused, which is logged',
      () => Promise.reject(new Error('denied')),
      ['A message that ran out of time could not be marked'],
    ],
    ['not answered', ({ clock }) => clock.sleep(60_000), []],
  ])('does not delay the answer of its batch when its mark is %s', async (_what, mark, warnings) => {
    const one = oneMessage();
    const endsBy = one.clock.now() + 30_000;
    const table = beforeWrite(one.memory, MARK, () => mark(one));
    const { failed } = await one.deliver(forever, { table });
    expect(failed).toHaveLength(1);
    expect(one.clock.now()).toBeLessThan(endsBy);
    expect(one.logged('warn')).toEqual(warnings);
    expect(one.telemetry.counted('TableFailures')).toBe(0);
  });

  test('is retried after the delay of a failure', async () => {
    const one = oneMessage();
    await one.deliver(forever, { retryFirstMs: 60_000 });
    expect(one.waitsMs()).toBeGreaterThanOrEqual(29_000);
  });

  test('is retried after the delay of an outage if the table took the time', async () => {
    const one = oneMessage();
    await one.deliver(forever, { table: beforeWrite(one.memory, CLAIM, () => one.clock.sleep(5_000)) });
    expect(one.waitsMs()).toBeGreaterThanOrEqual(47_000);
  });

  const nearlyAll = 29_500;
  const refused = {
    Put: { Item: { PK: 'THING#1', SK: 'THING' }, ConditionExpression: 'attribute_exists(PK)' },
  };
  const invalid = ThingHappened.create({ aggregateId: '', data: { n: 1 } });
  const charges = (ctx: LeasedContext) => ctx.once('charge', async () => {});
  const commits = (ctx: LeasedContext) => ctx.commit({ writes: [domainRow] });

  test.each<[string, number, string, (ctx: LeasedContext, one: OneMessage) => unknown]>([
    ['itself', 0, '', () => {}],
    ['its provider', 0, '', (ctx, { clock }) => ctx.once('charge', () => clock.sleep(nearlyAll))],
    ['the table, which started an effect slowly', 1, 'startedAt', charges],
    ['the table, which stored a result slowly', 1, 'completedAt', charges],
    ['the table, which committed slowly', 1, 'THING#1', commits],
    ['itself, after an effect', 0, '', charges],
    ['itself, after a refused commit', 0, '', (ctx) => ctx.commit({ writes: [refused] }).catch(() => {})],
    [
      'the table, which started an effect slowly after a commit that was not sent',
      1,
      'startedAt',
      async (ctx) => {
        await ctx.commit({ events: [invalid] }).catch(() => {});
        await charges(ctx);
      },
    ],
  ])('is judged by what took its time: %s (outages: %d)', async (_what, outages, slow, work) => {
    const one = oneMessage();
    const table = slow === '' ? one.memory : beforeWrite(one.memory, slow, () => one.clock.sleep(nearlyAll));
    const handler = async (ctx: LeasedContext) => {
      await work(ctx, one);
      await forever();
    };
    await one.deliver(handler, { table });
    expect(one.telemetry.counted('TableFailures')).toBe(outages);
    const usedUp =
      'Slow calls of the table, or others of its batch, used up the time of a message; no attempt is counted';
    expect(one.logged().includes(usedUp)).toBe(outages > 0);
    if (outages === 0) expect(one.row()).toMatchObject({ status: 'PROCESSING', outOfTime: true });
  });
});

describe('a handler that obeys its signal when the time of its function is up', () => {
  const obeys = ({ signal }: LeasedContext) =>
    new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))));
  /** The handler is over before the table has taken the mark. */
  const slowMark = (one: OneMessage, table = one.table) =>
    beforeWrite(table, MARK, () => one.clock.sleep(100));

  test.each([
    ['counts as cut off when its claim took 2 s', 2_000, 0],
    ['is an outage when its claim took longer than 2 s', 2_001, 1],
    ['is an outage when its claim took 5 s', 5_000, 1],
  ])('%s', async (_what, claimMs, outages) => {
    const one = oneMessage();
    const table = slowMark(
      one,
      beforeWrite(one.memory, CLAIM, () => one.clock.sleep(claimMs)),
    );
    await one.deliver(obeys, { table });
    expect(one.telemetry.counted('TableFailures')).toBe(outages);
    expect(one.row()).toMatchObject({ status: 'FAILED', attempts: 0 });
    expect(one.row()?.unfinished).toBe(outages === 0 ? 1 : undefined);
  });

  /** Cuts off a message whose earlier claims ended so often without a result. */
  async function cutOff(unfinished: number, change: { maxAttempts?: number; retryFirstMs?: number }) {
    const one = oneMessage();
    await one.receivedBefore();
    await one.overwrite({ status: 'FAILED', fence: 'theirs', attempts: 0, unfinished });
    await one.deliver(obeys, { table: slowMark(one), ...change });
    return one;
  }

  test('is tried again on its last attempt if it ran in company', async () => {
    const one = await cutOff(0, { maxAttempts: 1 });
    expect(one.row()).toMatchObject({
      status: 'FAILED',
      attempts: 0,
      unfinished: 1,
      retryAt: one.visibleAt(),
    });
  });

  test('is rejected on its last attempt if it ran alone', async () => {
    const one = await cutOff(2, { maxAttempts: 1 });
    expect(one.row()).toMatchObject({ status: 'REJECTED' });
  });

  test('is retried by the schedule, in which attempts that are not counted are two at most', async () => {
    // The delay of a second attempt, though this was a first one: 120 to 240 s.
    expect((await cutOff(1, { retryFirstMs: 60_000 })).waitsMs()).toBeGreaterThanOrEqual(119_000);
    expect((await cutOff(9, { retryFirstMs: 1_000 })).waitsMs()).toBeLessThanOrEqual(16_000);
  });
});
