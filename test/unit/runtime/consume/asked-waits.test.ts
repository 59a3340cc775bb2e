import { describe, expect, test } from 'vitest';
import { RetryLater } from '../../../../lambdas/runtime/base/errors.ts';
import { DELAY_MAX_MS, WAITS_MAX_MS } from '../../../../lambdas/runtime/base/retry-schedule.ts';
import type { LeasedContext } from '../../../../lambdas/runtime/consume/handler.ts';
import { waitsWith } from '../../../../lambdas/runtime/inbox/past-attempts.ts';
import type { AttemptEnd } from '../../../../lambdas/runtime/store/inbox-row.ts';
import { oneMessage } from './consumer-rig.ts';

const HOUR_MS = 3_600_000;
/** A queue with the receives of the default one. */
const QUEUE = { maxReceiveCount: 105 };
const limited = (ms: number) => () => Promise.reject(new RetryLater(ms, new Error('rate limited')));

describe('a wait that a handler asks for', () => {
  test('counts no attempt: a message waits more often than it has attempts, and is processed', async () => {
    const one = oneMessage({}, QUEUE);
    const attempts: number[] = [];
    const begunAt = one.clock.now();
    const handle = async (ctx: LeasedContext) => {
      attempts.push(ctx.attempt);
      if (attempts.length <= 30) throw new RetryLater(60_000, new Error('rate limited'));
    };
    for (let wait = 1; wait <= 30; wait += 1) await one.deliver(handle);
    expect(one.row()).toMatchObject({
      status: 'FAILED',
      attempts: 0,
      lastError: 'rate limited',
      pastAttempts: [
        {
          attempt: 1,
          ended: 'waited',
          error: 'rate limited',
          wait: { since: expect.any(Number), times: 30 },
        },
      ],
    });
    expect(one.row()?.pastAttempts?.[0]?.wait?.since).toBeLessThan(begunAt + 1_000);
    expect(one.telemetry.counted('MessagesFailed')).toBe(0);
    await one.deliver(handle);
    expect(new Set(attempts)).toEqual(new Set([1]));
    expect(one.row()).toMatchObject({ status: 'PROCESSED', attempts: 1 });
    expect(one.hint()).toBeUndefined();
  });

  test('is as long as asked ten times, and then at least that of an outage', async () => {
    const one = oneMessage({}, QUEUE);
    const waits: number[] = [];
    for (let wait = 1; wait <= 16; wait += 1) {
      await one.deliver(limited(5_000));
      waits.push(Math.round(one.waitsMs() / 1_000));
    }
    expect(waits.slice(0, 10)).toEqual(Array(10).fill(5));
    for (const [index, minutes] of [1, 2, 4, 8, 15, 15].entries()) {
      expect(waits[10 + index]).toBeGreaterThanOrEqual(minutes * 60 * 0.8 - 1);
      expect(waits[10 + index]).toBeLessThanOrEqual(minutes * 60);
    }
  });

  test('counts as an attempt from a day after the first one, so that a message cannot wait forever', async () => {
    const one = oneMessage();
    const begunAt = one.clock.now();
    let runs = 0;
    const handle = () => {
      runs += 1;
      return limited(DELAY_MAX_MS)();
    };
    for (let wait = 1; wait <= 2; wait += 1) await one.deliver(handle, { maxAttempts: 2 });
    expect(one.row()).toMatchObject({ status: 'FAILED', attempts: 0 });
    await one.deliver(handle, { maxAttempts: 2 });
    expect(one.row()).toMatchObject({ status: 'FAILED', attempts: 1 });
    await one.deliver(handle, { maxAttempts: 2 });
    expect(one.row()).toMatchObject({
      status: 'REJECTED',
      reason: 'ATTEMPTS_EXHAUSTED',
      lastError: expect.stringContaining('rate limited'),
    });
    expect(runs).toBe(4);
    expect(one.clock.now() - begunAt).toBeLessThan(WAITS_MAX_MS + 2 * DELAY_MAX_MS);
  });

  test('of 0 counts as an attempt', async () => {
    const one = oneMessage();
    await one.deliver(limited(0));
    expect(one.row()).toMatchObject({ status: 'FAILED', attempts: 1, pastAttempts: [{ ended: 'failed' }] });
  });

  test('between failures neither forgets them nor starts over', async () => {
    const one = oneMessage();
    const failing = () => Promise.reject(new Error('down'));
    for (const handle of [failing, limited(HOUR_MS), limited(HOUR_MS), failing, limited(HOUR_MS)])
      await one.deliver(handle);
    const past: readonly AttemptEnd[] = one.row()?.pastAttempts ?? [];
    expect(past.map(({ attempt, ended, wait }) => [attempt, ended, wait?.times])).toEqual([
      [1, 'failed', undefined],
      [2, 'waited', 2],
      [2, 'failed', undefined],
      [3, 'waited', 3],
    ]);
    expect(past[3]?.wait?.since).toBe(past[1]?.wait?.since);
    expect(one.row()).toMatchObject({ attempts: 2 });
  });

  test('keeps the effects that ran in the waits before it', async () => {
    const one = oneMessage();
    const handle = (name: string) => async (ctx: LeasedContext) => {
      await ctx.once(name, async () => 1);
      throw new RetryLater(60_000);
    };
    await one.deliver(handle('a'));
    await one.deliver(handle('b'));
    expect(one.row()?.pastAttempts).toMatchObject([{ effects: { a: 'completed', b: 'completed' } }]);
  });
});

describe('the waits of a message', () => {
  const waited = (since: number, times: number) => ({
    at: since,
    attempt: 1,
    ended: 'waited' as const,
    wait: { since, times },
  });
  const rejected = { at: 30_000, attempt: 1, ended: 'rejected' as const };

  test.each([
    ['begin now without an earlier one', [], undefined, { since: 100_000, times: 1 }],
    ['continue earlier ones', [waited(20_000, 4)], 10_000, { since: 20_000, times: 5 }],
    [
      'start over after a redrive of a rejected message',
      [waited(20_000, 4), rejected],
      undefined,
      { since: 100_000, times: 1 },
    ],
    ['start over after a redrive of another one', [waited(20_000, 4)], 50_000, { since: 100_000, times: 1 }],
    [
      'continue if the message was sent in the future, by a clock that is ahead',
      [waited(20_000, 4)],
      200_000,
      { since: 20_000, times: 5 },
    ],
    [
      'ignore what is not one',
      [{ ...waited(20_000, 4), wait: 'x' as never }],
      undefined,
      { since: 100_000, times: 1 },
    ],
  ])('%s', (_what, past, sentAt, expected) => {
    expect(waitsWith(past, 100_000, sentAt)).toEqual(expected);
  });
});

test('a wait for a limit is not one that a handler asked for: it neither spaces its waits nor begins their day', () => {
  const limit = { name: 'bank', key: 'm', slotAt: 9 };
  const past: AttemptEnd[] = [{ at: 1, attempt: 1, ended: 'waited', wait: { since: 1, times: 12, limit } }];
  expect(waitsWith(past, 5_000)).toEqual({ since: 5_000, times: 1 });
});
