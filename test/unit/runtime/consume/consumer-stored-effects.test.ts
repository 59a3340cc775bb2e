import { describe, expect, test, vi } from 'vitest';
import { CLOCK_SKEW_MS } from '../../../../lambdas/runtime/base/clock.ts';
import { AlreadyProcessed, errorCode, PoisonMessage } from '../../../../lambdas/runtime/base/errors.ts';
import { nothingHappened } from '../../../../lambdas/runtime/base/nothing-happened.ts';
import { type LeasedContext, leased } from '../../../../lambdas/runtime/consume/handler.ts';
import { defineEvent } from '../../../../lambdas/runtime/events/event.ts';
import type { StoredEffect } from '../../../../lambdas/runtime/store/stored-effect.ts';
import { ThingHappened } from '../../../support/runtime-rig.ts';
import {
  beforeWrite,
  body,
  CONSUMER,
  crashable,
  domainRow,
  oneMessage,
  throttled,
  unanswered,
} from './consumer-rig.ts';

const charge = async () => 'charged';
const charges = (ctx: LeasedContext) => ctx.once('charge', charge);
const busy = async () => Promise.reject(new Error('bank answered 500'));
const refusing = async () => Promise.reject(nothingHappened(new Error('bank answered 422')));
const failsFirst = (ctx: LeasedContext): void => {
  if (ctx.attempt === 1) throw new Error('later step failed');
};
type OneMessage = ReturnType<typeof oneMessage>;

describe('the result of an effect', () => {
  const COMPLETION = 'completedAt';

  test.each([
    ['belongs to another worker', { status: 'PROCESSING', fence: 'other' }],
    ['was resolved', { status: 'PROCESSED', fence: 'other' }],
    ['was rejected', { status: 'REJECTED' }],
  ])('is stored, and does not expire, although its message %s by then', async (_what, change) => {
    const one = oneMessage();
    await one.deliver((ctx) =>
      ctx.once('charge', async () => {
        await one.overwrite(change);
        return 'charged';
      }),
    );
    expect(one.effect()).toMatchObject({ status: 'COMPLETED', result: '"charged"' });
    expect(one.row()).toMatchObject(change);
    expect(one.row()).not.toHaveProperty('expiresAt');
  });

  test('is stored if the table recovers before the function ends', async () => {
    const one = oneMessage();
    const recoversAt = one.clock.now() + 20_000;
    const ran = vi.fn(charge);
    const table = beforeWrite(one.memory, COMPLETION, () =>
      one.clock.now() < recoversAt ? throttled() : undefined,
    );
    await one.deliver((ctx) => ctx.once('charge', ran), { table });
    expect(ran).toHaveBeenCalledTimes(1);
    expect(one.row()).toMatchObject({ status: 'PROCESSED', attempts: 1 });
  });

  test('is not stored any more shortly before the function ends, and no attempt is counted', async () => {
    const one = oneMessage();
    const tries = vi.fn(throttled);
    const startedAt = one.clock.now();
    await one.deliver(charges, { table: beforeWrite(one.memory, COMPLETION, tries), timeoutMs: 30_000 });
    expect(one.clock.now() - startedAt).toBeLessThan(30_000);
    // In 27 s, with pauses of half a second to a second.
    expect(tries.mock.calls.length).toBeGreaterThan(25);
    expect(tries.mock.calls.length).toBeLessThan(60);
    expect(one.row()).toMatchObject({ status: 'FAILED', attempts: 0 });
    expect(one.effect()).toMatchObject({ status: 'IN_PROGRESS' });
  });

  test('is stored up to 4 KB', async () => {
    const one = oneMessage();
    const result = 'x'.repeat(4_094); // and two quotes
    await one.deliver(async (ctx) => void (await ctx.once('charge', async () => result)));
    expect(one.effect()).toMatchObject({ status: 'COMPLETED', result: `"${result}"` });
  });

  test('is undefined in each attempt if the effect returned nothing', async () => {
    const results: unknown[] = [];
    await oneMessage().drain(async (ctx) => {
      results.push(await ctx.once('mail', async () => {}));
      failsFirst(ctx);
    });
    expect(results).toEqual([undefined, undefined]);
  });
});

describe('a completed effect', () => {
  test('costs no write, and is refused a second time in the same run', async () => {
    const one = oneMessage();
    await one.leaveEffect({ status: 'COMPLETED', result: '"charged"' });
    const writes = vi.fn();
    const codes: unknown[] = [];
    const handler = async (ctx: LeasedContext) => {
      const first = await ctx.once('charge', async () => 'again');
      codes.push(await ctx.once('charge', charge).catch(errorCode));
      return first;
    };
    await one.deliver(handler, { table: beforeWrite(one.memory, 'effects.', writes) });
    expect(one.row()).toMatchObject({ status: 'PROCESSED', result: '"charged"' });
    expect(codes).toEqual(['EFFECT_REPEATED']);
    expect(writes).not.toHaveBeenCalled();
  });

  test('does not run and returns its result, although it was stored after the claim', async () => {
    const one = oneMessage();
    const ran = vi.fn(charge);
    await one.deliver(async (ctx) => {
      await one.leaveEffect({ status: 'COMPLETED', result: '"late"' });
      return ctx.once('charge', ran);
    });
    expect(ran).not.toHaveBeenCalled();
    expect(one.row()).toMatchObject({ status: 'PROCESSED', result: '"late"' });
  });

  test('does not run again, however long ago its function was stopped', async () => {
    const one = oneMessage();
    const ran = vi.fn(charge);
    const handler = async (ctx: LeasedContext) => {
      await ctx.once('charge', ran);
      failsFirst(ctx);
    };
    await one.deliver(handler);
    await one.clock.advance(3_600_000);
    await one.deliver(handler);
    expect(ran).toHaveBeenCalledTimes(1);
    expect(one.row()).toMatchObject({ status: 'PROCESSED', attempts: 2 });
  });
});

describe('the entry of a running effect', () => {
  /** Changes the row while the effect runs. @returns the code of the error that the call throws */
  async function changedDuring(one: OneMessage, change: () => Promise<unknown>) {
    const codes: unknown[] = [];
    await one.deliver(async (ctx) => codes.push(await ctx.once('charge', change).catch(errorCode)));
    return codes;
  }

  test.each<[string, Partial<StoredEffect>]>([
    ['IN_PROGRESS under the fencing token of another worker', { status: 'IN_PROGRESS', fence: 'other' }],
    ['COMPLETED under the fencing token of another worker', { status: 'COMPLETED', fence: 'other' }],
    ['IN_PROGRESS by another call', { status: 'IN_PROGRESS', run: 2 }],
    ['COMPLETED by another call', { status: 'COMPLETED', run: 2 }],
    ['RELEASED', { status: 'RELEASED' }],
  ])('is not changed at its end if it is %s', async (_what, change) => {
    const one = oneMessage();
    let theirs: Partial<StoredEffect> = {};
    const codes = await changedDuring(one, async () => {
      theirs = { ...one.effect(), result: '"theirs"', ...change };
      await one.leaveEffect(theirs);
    });
    expect(theirs).toMatchObject(change);
    expect(codes).toEqual(['FENCE_LOST']);
    expect(one.effect()).toEqual(theirs);
  });

  test('does not bring back the row of its message, which TTL has deleted', async () => {
    const one = oneMessage();
    const codes = await changedDuring(one, async () => {
      const { PK = '', SK = '' } = (one.row() ?? {}) as { PK?: string; SK?: string };
      await one.memory.write({ Delete: { Key: { PK, SK } } });
    });
    expect(codes).toEqual(['FENCE_LOST']);
    expect(one.row()).toBeUndefined();
  });
});

describe('an effect that fails', () => {
  /** Delivers a message whose effect fails, on a table that does something before the release of the effect. */
  async function failed(beforeRelease: (one: OneMessage) => Promise<unknown>) {
    const one = oneMessage();
    let left: StoredEffect | undefined;
    const table = beforeWrite(one.memory, '":statusNow":"RELEASED"', () => beforeRelease(one));
    const handler = (ctx: LeasedContext) =>
      ctx.once('charge', busy).catch((error: unknown) => {
        left = one.effect();
        throw error;
      });
    await one.deliver(handler, { table });
    return { one, left };
  }

  test('is released before its handler continues', async () => {
    const { left } = await failed(({ clock }) => clock.sleep(500));
    expect(left).toMatchObject({ status: 'RELEASED' });
  });

  test("fails its handler with the provider's error although it cannot be released, which is logged", async () => {
    const { one, left } = await failed(throttled);
    expect(left).toMatchObject({ status: 'IN_PROGRESS' });
    expect(one.row()).toMatchObject({ status: 'FAILED', attempts: 1, lastError: 'bank answered 500' });
    expect(one.telemetry.lines()).toContainEqual(
      expect.objectContaining({
        level: 'warn',
        message: 'A failed effect could not be released',
        extra: expect.objectContaining({ effect: 'charge' }),
      }),
    );
  });
});

/** The errors in the log that contain a text, with the event ids of their messages. */
const errorsOf = ({ telemetry }: OneMessage, text: string) =>
  telemetry
    .lines()
    .map(({ extra }) => extra as { readonly eventId: string; readonly error?: Error } | undefined)
    .filter((extra) => extra?.error?.message.includes(text));

describe('an effect in doubt, which an earlier attempt left without a result,', () => {
  test.each([
    ['its key', ['charge'], charges, 'key'],
    ['all keys', ['charge', 'mail'], charges, 'keys'],
    ['its key, although the handler does not request it', ['charge'], async () => {}, 'key'],
  ])('is counted and logged with %s when its function has stopped', async (_what, names, handler, noun) => {
    const one = oneMessage();
    for (const name of names) await one.leaveEffect({ endsBy: 0 }, name);
    await one.deliver(handler);
    const { eventId } = one.event;
    const keys = names.map((name) => `${CONSUMER}:${eventId}:${name}`).join(', ');
    const message = expect.stringContaining(`idempotency ${noun} ${keys}.`);
    expect(errorsOf(one, 'may have happened')).toMatchObject([
      { eventId, error: { code: 'EFFECTS_IN_DOUBT', message } },
    ]);
    expect(one.telemetry.counted('EffectsInDoubt')).toBe(names.length);
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
  });

  test.each<[string, number, Partial<StoredEffect>, number]>([
    ['not while clocks may differ', -CLOCK_SKEW_MS, {}, 0],
    ['once clocks cannot differ that much', -CLOCK_SKEW_MS - 1, {}, 1],
    ['not while its function may still store the result', 60_000, {}, 0],
    ['not with a result', -60_000, { status: 'COMPLETED', result: '"charged"' }, 0],
    ['not after it failed and was released', -60_000, { status: 'RELEASED' }, 0],
  ])('is counted %s', async (_when, endedMs, effect, expected) => {
    const one = oneMessage();
    await one.leaveEffect({ endsBy: one.clock.now() + endedMs, ...effect });
    await one.deliver(charges);
    expect(one.telemetry.counted('EffectsInDoubt')).toBe(expected);
    expect(errorsOf(one, 'may have happened')).toHaveLength(expected);
  });
});

describe('the effects of a rejected message', () => {
  const rejects = () => {
    throw new PoisonMessage('no such customer');
  };

  test.each<[string, (ctx: LeasedContext) => Promise<unknown>, number]>([
    ['that completed', charges, 1],
    ['that failed', (ctx) => ctx.once('charge', busy).catch(() => {}), 1],
    [
      'of which one completed and one failed',
      (ctx) => charges(ctx).then(() => ctx.once('ship', busy).catch(() => {})),
      2,
    ],
    ['after which nothing happened', (ctx) => ctx.once('charge', refusing).catch(() => {}), 0],
    ['that were never started', async () => {}, 0],
  ])('are counted and named with their keys: %s', async (_what, effects, counted) => {
    const one = oneMessage();
    await one.drain(async (ctx) => {
      await effects(ctx);
      rejects();
    });
    expect(one.row()).toMatchObject({ status: 'REJECTED' });
    expect(one.telemetry.counted('EffectsInDoubt')).toBe(counted);
    const message = expect.stringContaining(`${one.event.eventId}:charge`);
    expect(errorsOf(one, 'No attempt follows')).toMatchObject(
      counted === 0 ? [] : [{ error: { code: 'EFFECTS_IN_DOUBT', message } }],
    );
  });

  test('are counted once more where an earlier attempt left them in doubt', async () => {
    const one = oneMessage();
    await one.leaveEffect({ status: 'RELEASED' });
    await one.drain(rejects);
    expect(one.telemetry.counted('EffectsInDoubt')).toBe(1);
  });
});

describe('the effects of a message that is rejected without a claim', () => {
  const Other = defineEvent({ ...ThingHappened, type: 'OtherHappened' });
  /** The next version has no handler of the event. */
  const removed = leased(Other, async () => {});

  test.each<[string, Partial<StoredEffect>, number]>([
    ['that its worker left in doubt', {}, 1],
    ['that completed', { status: 'COMPLETED' }, 1],
    ['that failed', { status: 'RELEASED' }, 1],
    ['after which nothing happened', { status: 'RELEASED', nothingHappened: true }, 0],
  ])('are counted once and named with their keys: %s', async (_what, effect, counted) => {
    const one = oneMessage();
    await one.leaveEffect(effect);
    await one.drain(removed);
    expect(one.row()).toMatchObject({ status: 'REJECTED', reason: 'UNKNOWN_EVENT_TYPE' });
    expect(one.telemetry.counted('EffectsInDoubt')).toBe(counted);
    const message = expect.stringContaining(`${CONSUMER}:${one.event.eventId}:charge`);
    expect(errorsOf(one, 'No attempt follows')).toMatchObject(
      counted === 0 ? [] : [{ error: { code: 'EFFECTS_IN_DOUBT', message } }],
    );
  });

  test('are counted after a crash inside an effect', async () => {
    const one = oneMessage();
    const { deliver } = crashable(one, (process) => [
      leased(ThingHappened, (_, ctx) => ctx.once('charge', () => process.kill())),
    ]);
    await deliver().catch(() => {});
    expect(one.effect()).toMatchObject({ status: 'IN_PROGRESS' });
    await one.clock.advance(60_000);
    await one.drain(removed);
    expect(one.telemetry.counted('EffectsInDoubt')).toBe(1);
  });

  test('are counted again after a redrive', async () => {
    const one = oneMessage();
    await one.leaveEffect({});
    await one.drain(removed);
    one.queue.send(body(one.event));
    await one.drain(removed);
    expect(one.telemetry.counted('EffectsInDoubt')).toBe(2);
  });

  test('keep it from being rejected until they can be read', async () => {
    const one = oneMessage();
    await one.leaveEffect({});
    const { get } = one.table;
    const table = {
      ...one.table,
      get: (...args: Parameters<typeof get>) => (args[0].SK === 'MESSAGE' ? throttled() : get(...args)),
    };
    await one.deliver(removed, { table });
    expect(one.row()).toMatchObject({ status: 'FAILED' });
    await one.drain(removed);
    expect(one.row()).toMatchObject({ status: 'REJECTED' });
    expect(one.telemetry.counted('EffectsInDoubt')).toBe(1);
  });
});

describe('the past attempts of a message', () => {
  test('tell what each ran, over failures, a crash, a rejection and a redrive', async () => {
    const one = oneMessage();
    await one.drain(async (ctx) => {
      await ctx.once('charge', ctx.attempt === 1 ? busy : charge);
      throw new Error(`attempt ${ctx.attempt}`);
    });
    expect(one.row()).toMatchObject({
      status: 'REJECTED',
      pastAttempts: [
        { attempt: 1, ended: 'failed', error: 'bank answered 500', effects: { charge: 'failed' } },
        { attempt: 2, ended: 'failed', error: 'attempt 2', effects: { charge: 'completed' } },
        { attempt: 3, ended: 'rejected' },
      ],
    });
    one.queue.redrive();
    await one.drain(async (ctx) => void (await ctx.once('charge', charge)));
    const { pastAttempts } = one.row() as { readonly pastAttempts: readonly object[] };
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
    expect(pastAttempts).toHaveLength(3);
  });

  test('tell of an effect whose start was not answered that it may have happened', async () => {
    const one = oneMessage();
    const table = beforeWrite(one.memory, 'IN_PROGRESS', unanswered);
    await one.deliver(charges, { table });
    expect(one.row()).toMatchObject({
      status: 'FAILED',
      attempts: 0,
      pastAttempts: [{ attempt: 1, ended: 'released', effects: { charge: 'unknown' } }],
    });
  });

  test('tell nothing of an effect that waits for another function', async () => {
    const one = oneMessage();
    await one.leaveEffect({ endsBy: one.clock.now() + 60_000 });
    await one.deliver(charges);
    expect(one.row()).toMatchObject({ status: 'FAILED', attempts: 0 });
    expect(one.row()).not.toHaveProperty('pastAttempts');
  });

  test('tell of an attempt without a result which effects it left', async () => {
    const one = oneMessage();
    await one.leaveEffect({ fence: 'of an earlier one', status: 'COMPLETED' }, 'ship');
    await one.leaveEffect({ fence: 'of the dead', endsBy: 1 });
    await one.overwrite({ status: 'PROCESSING', fence: 'of the dead', leaseUntil: 1, endsBy: 1 });
    await one.deliver(charges);
    const { status, pastAttempts } = one.row() as { status: string; pastAttempts: { effects: object }[] };
    expect(status).toBe('PROCESSED');
    expect(pastAttempts).toMatchObject([{ ended: 'no-result' }]);
    expect(pastAttempts[0]?.effects).toEqual({ charge: 'unknown' });
  });

  test('are not written where the first attempt succeeds', async () => {
    const one = oneMessage();
    await one.deliver(charges);
    expect(one.row()).not.toHaveProperty('pastAttempts');
  });
});

describe('a released effect', () => {
  test.each([
    ['may have happened', busy, undefined, 'bank answered 500'],
    ['did not happen, if its error says so', refusing, true, 'bank answered 422'],
  ])('keeps its error and the time of its end: %s', async (_what, effect, nothing, error) => {
    const one = oneMessage();
    await one.deliver((ctx) => ctx.once('charge', effect));
    const stored = one.effect();
    expect(stored).toMatchObject({ status: 'RELEASED', error });
    expect(stored?.nothingHappened).toBe(nothing);
    expect(stored?.endedAt).toBeGreaterThanOrEqual(stored?.startedAt ?? Number.POSITIVE_INFINITY);
  });

  test('stays in doubt although a later run says that nothing happened, in another attempt', async () => {
    const one = oneMessage();
    await one.deliver((ctx) => ctx.once('charge', ctx.attempt === 1 ? busy : refusing));
    await one.deliver((ctx) => ctx.once('charge', ctx.attempt === 1 ? busy : refusing));
    expect(one.effect()).toMatchObject({ status: 'RELEASED', error: 'bank answered 422' });
    expect(one.effect()).not.toHaveProperty('nothingHappened');
  });

  test('stays in doubt although a later run says that nothing happened, in the same attempt', async () => {
    const one = oneMessage();
    await one.deliver(async (ctx) => {
      await ctx.once('charge', busy).catch(() => {});
      await ctx.once('charge', refusing);
    });
    expect(one.effect()).not.toHaveProperty('nothingHappened');
    expect(one.row()).toMatchObject({ pastAttempts: [{ effects: { charge: 'failed' } }] });
  });

  test('stays in doubt after a run that stored no result', async () => {
    const one = oneMessage();
    await one.leaveEffect({ endsBy: 0 });
    await one.deliver((ctx) => ctx.once('charge', refusing));
    expect(one.effect()).toMatchObject({ status: 'RELEASED' });
    expect(one.effect()).not.toHaveProperty('nothingHappened');
  });

  test('did not happen if all of its runs say so', async () => {
    const one = oneMessage();
    await one.deliver((ctx) => ctx.once('charge', refusing));
    await one.deliver((ctx) => ctx.once('charge', refusing));
    expect(one.effect()).toMatchObject({ nothingHappened: true });
  });

  test('keeps 200 characters of its error', async () => {
    const one = oneMessage();
    await one.deliver((ctx) => ctx.once('charge', () => Promise.reject(new Error('x'.repeat(1_000)))));
    expect(one.effect()?.error).toBe('x'.repeat(200));
  });
});

describe('the effects of earlier attempts', () => {
  type Case = [
    what: string,
    handler: (ctx: LeasedContext) => unknown,
    counted: number,
    message?: string,
    prepare?: (one: OneMessage) => Promise<unknown>,
  ];
  const renamed = (end: (ctx: LeasedContext) => unknown) => async (ctx: LeasedContext) => {
    await ctx.once(`charge-${ctx.attempt}`, charge);
    failsFirst(ctx);
    await end(ctx);
  };
  const RENAMED = 'requested "charge-2" and never requested "charge-1"';

  test.each<Case>([
    ['once under another name when the handler returns', renamed(() => {}), 1, RENAMED],
    [
      'once under another name when the handler commits',
      renamed((ctx) => ctx.commit({ writes: [domainRow] })),
      1,
      RENAMED,
    ],
    [
      'once for each name that an earlier attempt used',
      async (ctx) => {
        for (const item of ['a', 'b']) await ctx.once(`charge-${item}-${ctx.attempt}`, charge);
        failsFirst(ctx);
      },
      2,
      'never requested "charge-a-1", "charge-b-1"',
    ],
    [
      'once after a crash in the middle of one, which may have happened',
      (ctx) => ctx.once('charge-2', charge),
      1,
      RENAMED,
      (one) => one.leaveEffect({ endsBy: 0 }, 'charge-1'),
    ],
    [
      'once when this attempt requests none',
      async (ctx) => {
        if (ctx.attempt === 1) await charges(ctx);
        failsFirst(ctx);
      },
      1,
      'requested no effect and never requested "charge"',
    ],
    [
      'not under the same name',
      async (ctx) => {
        await charges(ctx);
        failsFirst(ctx);
      },
      0,
    ],
    [
      'once if the effect failed and is not requested again',
      (ctx) => (ctx.attempt === 1 ? ctx.once('charge', busy) : charge()),
      1,
      'never requested "charge"',
    ],
    [
      'not if the effect failed, its error says that nothing happened, and it is not requested again',
      (ctx) => (ctx.attempt === 1 ? ctx.once('charge', refusing) : charge()),
      0,
    ],
    [
      'not where the handler reports its event as already processed',
      async (ctx) => {
        if (ctx.attempt > 1) throw new AlreadyProcessed('charged');
        await charges(ctx);
        failsFirst(ctx);
      },
      0,
    ],
    ['not in a first attempt', charges, 0],
  ])('are reported %s', async (_what, handler, counted, message, prepare) => {
    const one = oneMessage();
    await prepare?.(one);
    await one.drain(handler);
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
    expect(one.telemetry.counted('UnstableEffects')).toBe(counted);
    const { eventId } = one.event;
    const error = { code: 'UNSTABLE_EFFECTS', message: expect.stringContaining(message ?? '') };
    expect(errorsOf(one, 'never requested')).toMatchObject(message === undefined ? [] : [{ eventId, error }]);
  });

  test('are reported when the redrive of a rejected message no longer requests them', async () => {
    const one = oneMessage();
    await one.drain(async (ctx) => {
      await charges(ctx);
      throw new PoisonMessage('no such customer');
    });
    one.queue.redrive();
    await one.drain(() => {});
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
    expect(one.telemetry.counted('UnstableEffects')).toBe(1);
  });
});
