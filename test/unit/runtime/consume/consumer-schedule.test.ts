import { describe, expect, test } from 'vitest';
import { leased, transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import {
  DELAY_MAX_MS,
  outageDelayMs,
  retryDelayMs,
  retrySpanMs,
  suspectDelayMs,
} from '../../../../lambdas/runtime/consume/retry-schedule.ts';
import { RetryLater } from '../../../../lambdas/runtime/errors.ts';
import { consumerConfig as defaultConfig } from '../../../../testing/index.ts';
import { rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { consumer, domainRow, inboxRow, send } from './consumer-rig.ts';

const MINUTE_MS = 60_000;
const { maxAttempts, retryFirstMs, retryLongestMs } = defaultConfig();
const SCHEDULE = { retryFirstMs, retryLongestMs };

describe('the default retry schedule', () => {
  test('spreads its attempts over at least half an hour, and the first retries are fast', () => {
    const longest = Array.from(
      { length: maxAttempts - 1 },
      (_, i) => retryDelayMs(i + 1, SCHEDULE, 0) / 1_000,
    );
    expect(longest).toEqual([2, 8, 32, 128, 512, 900, 900, 900, 900]);
    expect(retrySpanMs(maxAttempts, SCHEDULE)).toBeGreaterThan(35 * MINUTE_MS);
  });

  test.each([
    ['leased', leased],
    ['transactional', transactional],
  ])('carries a %s handler through a 30-minute outage of its provider', async (_kind, kind) => {
    const parts = rig({ maxReceiveCount: 105 });
    const event = send(parts);
    const up = parts.clock.now() + 30 * MINUTE_MS;
    const { drain } = consumer(
      parts,
      [
        kind(ThingHappened, async () => {
          if (parts.clock.now() < up) throw new Error('bank answered 503');
          return {};
        }),
      ],
      parts.table,
      { maxAttempts },
    );
    await drain();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
    expect(parts.queue.deadLetters()).toEqual([]);
  });
});

describe('a delay', () => {
  test.each([
    [1, 2_000],
    [2, 8_000],
    [5, 512_000],
    [6, 900_000],
    [1_000, 900_000],
  ])('after failure %d is at most %d ms, and at least half of that', (attempt, longestMs) => {
    const schedule = { retryFirstMs: 2_000, retryLongestMs: 900_000 };
    expect([0, 0.5, 1].map((share) => retryDelayMs(attempt, schedule, share))).toEqual([
      longestMs,
      longestMs * 0.75,
      longestMs * 0.5,
    ]);
  });

  test.each([
    [1, 60_000],
    [2, 120_000],
    [5, 900_000],
    [1_000, 900_000],
  ])(
    'after receive %d in an outage is at most %d ms, and at least four fifths of that',
    (receives, longestMs) => {
      expect([0, 0.5, 1].map((share) => outageDelayMs(receives, share))).toEqual([
        longestMs,
        longestMs * 0.9,
        longestMs * 0.8,
      ]);
    },
  );

  test('is no longer than the longest, however long the first is', () => {
    expect(retryDelayMs(1, { retryFirstMs: 60_000, retryLongestMs: 10_000 }, 0)).toBe(10_000);
  });

  test('a delay of zero stays zero after the most attempts', () => {
    expect(retryDelayMs(1_000, { retryFirstMs: 0, retryLongestMs: 900_000 }, 1)).toBe(0);
  });

  test('leaves SQS, which hides a message for 12 hours from its receive, the time of the longest function', () => {
    expect(DELAY_MAX_MS + 15 * MINUTE_MS).toBeLessThanOrEqual(12 * 60 * MINUTE_MS);
  });
});

test.each([
  [1, 0],
  [2, 1_000],
  [3, 5_000],
])('%d attempts span %d ms at least', (attempts, spanMs) => {
  expect(retrySpanMs(attempts, { retryFirstMs: 2_000, retryLongestMs: 900_000 })).toBe(spanMs);
});

test('messages that must run alone are spread over half a minute at first, over more the longer they wait, over 15 minutes at most', () => {
  for (const receives of [1, 4, 20, 100]) expect(suspectDelayMs(receives, 0)).toBe(1_000);
  expect(suspectDelayMs(1, 1)).toBeGreaterThan(30_000);
  expect(suspectDelayMs(1, 0.5)).toBeGreaterThan(15_000);
  expect(suspectDelayMs(4, 1)).toBe(60_000);
  expect(suspectDelayMs(8, 1)).toBe(120_000);
  expect(suspectDelayMs(100, 1)).toBe(15 * MINUTE_MS);
});

describe('a handler that throws RetryLater', () => {
  test.each([
    [90_000, 90],
    [{ minutes: 10 }, 600],
    [{ hours: 1, minutes: 1, seconds: 1 }, 3_661],
    [0, 0],
    [1_500, 2],
  ])('with %j is tried again after %d s, as its next attempt', async (after, seconds) => {
    const parts = rig();
    const attempts: number[] = [];
    const { deliver } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        attempts.push(ctx.attempt);
        if (ctx.attempt === 1) throw new RetryLater(after, new Error('rate limited'));
        await ctx.commit({ writes: [domainRow] });
      }),
    ]);
    const event = send(parts);
    await deliver();
    expect(inboxRow(parts, event)).toMatchObject({
      status: 'FAILED',
      attempts: 1,
      lastError: 'rate limited',
      fingerprint: 'worker Error: rate limited',
    });
    const [message] = parts.queue.messages();
    const waits = (message?.visibleAt ?? 0) - parts.clock.now();
    expect(waits).toBeLessThanOrEqual(seconds * 1_000);
    expect(waits).toBeGreaterThan(seconds * 1_000 - 200);
    await parts.clock.advance(waits);
    await deliver();
    expect(attempts).toEqual([1, 2]);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
  });

  test('is heard in a transactional handler too, from its first run on', async () => {
    const parts = rig();
    send(parts);
    const { deliver } = consumer(parts, [
      transactional(ThingHappened, async () => {
        throw new RetryLater({ minutes: 10 }, 'not yet');
      }),
    ]);
    const now = parts.clock.now();
    await deliver();
    expect(parts.queue.messages()[0]?.visibleAt).toBeGreaterThanOrEqual(now + 600_000);
  });

  test('on its last attempt is rejected, with the cause', async () => {
    const parts = rig();
    const event = send(parts);
    const handler = leased(ThingHappened, async () => {
      throw new RetryLater(1_000, new Error('rate limited'));
    });
    await consumer(parts, [handler], parts.table, { maxAttempts: 1 }).deliver();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'REJECTED', reason: 'ATTEMPTS_SPENT' });
    expect(inboxRow(parts, event)?.lastError).toContain('rate limited');
  });

  test.each([[-1], [Number.NaN], [{ hours: 12 }], [{ minutes: Number.NaN }], [undefined]])(
    'cannot request %j: the error names the allowed values',
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
