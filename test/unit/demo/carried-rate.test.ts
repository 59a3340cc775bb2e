import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { carriedRate, nextRate } from '../../../demo/carried-rate.ts';

describe('the rate of the orders', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it.each([
    { perSecond: 4, waiting: 0, next: 5, why: 'rises while hardly any message waits' },
    { perSecond: 4, waiting: 8, next: 5, why: 'rises while hardly any message waits' },
    { perSecond: 4, waiting: 9, next: 4, why: 'stays while some wait' },
    { perSecond: 6, waiting: 25, next: 4, why: 'falls when they pile up' },
    { perSecond: 1, waiting: 1_000, next: 1, why: 'never ends' },
  ])('$why: $perSecond with $waiting waiting', ({ perSecond, waiting, next }) => {
    expect(nextRate(perSecond, waiting)).toBe(next);
  });

  it('is looked at every second, and never above the most', async () => {
    let waiting = 0;
    const rate = carriedRate(async () => waiting, 3);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(rate.perSecond()).toBe(3);
    waiting = 100;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(rate.perSecond()).toBe(2);
    const stopped = rate.stop();
    await vi.advanceTimersByTimeAsync(1_000);
    await stopped;
  });

  it('keeps the error of a look for the end', async () => {
    const rate = carriedRate(() => Promise.reject(new Error('no queue')), 3);
    await expect(rate.stop()).rejects.toThrow('no queue');
  });
});
