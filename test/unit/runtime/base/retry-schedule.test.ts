import { describe, expect, test } from 'vitest';
import { RetryLater } from '../../../../lambdas/runtime/base/errors.ts';
import {
  DELAY_MAX_MS,
  outageDelayMs,
  retryDelayMs,
  suspectDelayMs,
} from '../../../../lambdas/runtime/base/retry-schedule.ts';
import { MINUTE_MS } from '../../../../lambdas/runtime/base/units.ts';
import { type LeasedContext, leased, transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import { consumerConfig as defaultConfig } from '../../../../testing/index.ts';
import { ThingHappened } from '../../../support/runtime-rig.ts';
import { domainRow, oneMessage } from '../consume/consumer-rig.ts';

const { maxAttempts, retryFirstMs, retryLongestMs } = defaultConfig();
const DEFAULT = { retryFirstMs, retryLongestMs };
const SCHEDULE = { retryFirstMs: 2_000, retryLongestMs: 900_000 };

describe('the default retry schedule', () => {
  test('spreads its attempts over at least 35 minutes, with fast first retries', () => {
    const retries = Array.from({ length: maxAttempts - 1 }, (_, i) => i + 1);
    const longest = retries.map((attempt) => retryDelayMs(attempt, DEFAULT, 0) / 1_000);
    expect(longest).toEqual([2, 8, 32, 128, 512, 900, 900, 900, 900]);
    const shortestMs = retries.reduce((sum, attempt) => sum + retryDelayMs(attempt, DEFAULT, 1), 0);
    expect(shortestMs).toBeGreaterThan(35 * MINUTE_MS);
  });

  test.each([
    ['leased', leased],
    ['transactional', transactional],
  ])('carries a %s handler through a 30-minute outage of its provider', async (_kind, kind) => {
    const one = oneMessage({}, { maxReceiveCount: 105 });
    const up = one.clock.now() + 30 * MINUTE_MS;
    const handler = kind(ThingHappened, async () => {
      if (one.clock.now() < up) throw new Error('bank answered 503');
      return {};
    });
    await one.drain(handler, { maxAttempts });
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
    expect(one.queue.deadLetters()).toEqual([]);
  });
});

describe('a delay', () => {
  const delays = (delayMs: (share: number) => number) => [0, 0.5, 1].map(delayMs);

  test.each([
    [1, 2_000],
    [2, 8_000],
    [5, 512_000],
    [6, 900_000],
    [1_000, 900_000],
  ])('after failure %d is at most %d ms, and at least half of that', (attempt, longestMs) => {
    expect(delays((share) => retryDelayMs(attempt, SCHEDULE, share))).toEqual(
      [1, 0.75, 0.5].map((part) => longestMs * part),
    );
  });

  test.each([
    [1, 60_000],
    [2, 120_000],
    [5, 900_000],
    [1_000, 900_000],
  ])(
    'at receive %d of an outage is at most %d ms, and at least four fifths of that',
    (receives, longestMs) => {
      expect(delays((share) => outageDelayMs(receives, share))).toEqual(
        [1, 0.9, 0.8].map((part) => longestMs * part),
      );
    },
  );

  test.each([
    [1, 0, 1_000],
    [4, 0, 1_000],
    [20, 0, 1_000],
    [100, 0, 1_000],
    [4, 1, 60_000],
    [8, 1, 120_000],
    [100, 1, 15 * MINUTE_MS],
  ])('of a suspect at receive %d, with the share %d of its range, is %d ms', (receives, share, delayMs) => {
    expect(suspectDelayMs(receives, share)).toBe(delayMs);
  });

  test('of a suspect is spread over more than half a minute at the first receive', () => {
    expect(suspectDelayMs(1, 1)).toBeGreaterThan(30_000);
    expect(suspectDelayMs(1, 0.5)).toBeGreaterThan(15_000);
  });

  test('is at most the longest one, even if the first one is configured to be longer', () => {
    expect(retryDelayMs(1, { retryFirstMs: 60_000, retryLongestMs: 10_000 }, 0)).toBe(10_000);
  });

  test('of zero stays zero after 1,000 attempts', () => {
    expect(retryDelayMs(1_000, { retryFirstMs: 0, retryLongestMs: 900_000 }, 1)).toBe(0);
  });

  test('leaves the longest function time within the 12 hours for which SQS hides a message', () => {
    expect(DELAY_MAX_MS + 15 * MINUTE_MS).toBeLessThanOrEqual(12 * 60 * MINUTE_MS);
  });
});

describe('RetryLater', () => {
  test.each([
    [90_000, 90],
    [{ minutes: 10 }, 600],
    [{ hours: 1, minutes: 1, seconds: 1 }, 3_661],
    [0, 0],
    [1_500, 2],
  ])('of %j schedules the next attempt after %d s', async (after, seconds) => {
    const one = oneMessage();
    let runs = 0;
    const handler = async (ctx: LeasedContext) => {
      runs += 1;
      if (runs === 1) throw new RetryLater(after, new Error('rate limited'));
      await ctx.commit({ writes: [domainRow] });
    };
    await one.deliver(handler);
    expect(one.row()).toMatchObject({
      status: 'FAILED',
      attempts: seconds === 0 ? 1 : 0,
      lastError: 'rate limited',
      fingerprint: 'worker Error: rate limited',
    });
    expect(one.waitsMs()).toBeLessThanOrEqual(seconds * 1_000);
    expect(one.waitsMs()).toBeGreaterThan(seconds * 1_000 - 200);
    await one.deliver(handler);
    expect(runs).toBe(2);
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
  });

  test('applies to the first run of a transactional handler, which has no claim', async () => {
    const one = oneMessage();
    const now = one.clock.now();
    const later = () => Promise.reject(new RetryLater({ minutes: 10 }, 'not yet'));
    await one.deliver(transactional(ThingHappened, later));
    expect(one.visibleAt()).toBeGreaterThanOrEqual(now + 600_000);
  });

  test('that counts rejects the message of the last attempt with its cause', async () => {
    const one = oneMessage();
    const later = () => Promise.reject(new RetryLater(0, new Error('rate limited')));
    await one.deliver(later, { maxAttempts: 1 });
    expect(one.row()).toMatchObject({
      status: 'REJECTED',
      reason: 'ATTEMPTS_EXHAUSTED',
      lastError: expect.stringContaining('rate limited'),
    });
  });

  test.each([[-1], [Number.NaN], [{ hours: 12 }], [{ minutes: Number.NaN }], [undefined]])(
    'refuses the delay %j with an error that names the allowed values',
    (after) => {
      expect(() => new RetryLater(after as number)).toThrow(
        expect.objectContaining({
          code: 'BAD_DELAY',
          message: expect.stringContaining('allowed: 0 to 39600000'),
        }),
      );
    },
  );
});
