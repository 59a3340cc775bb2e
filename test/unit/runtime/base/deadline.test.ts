import { describe, expect, test, vi } from 'vitest';
import { withDeadline } from '../../../../lambdas/runtime/base/clock.ts';
import { manualClock } from '../../../../testing/index.ts';
import { runThrough } from '../../../support/runtime-rig.ts';

describe('work with a deadline', () => {
  test('work that ends in time returns its result and leaves no timer', async () => {
    const clock = manualClock();
    const timeIsUp = vi.fn();
    const work = clock.sleep(100).then(() => 'done');
    await expect(runThrough(clock, withDeadline(clock, 200, work, timeIsUp))).resolves.toBe('done');
    await clock.advance(1_000);
    expect(timeIsUp).not.toHaveBeenCalled();
    expect(clock.sleeping()).toBe(0);
  });

  test('work that fails in time throws its error', async () => {
    const clock = manualClock();
    const work = Promise.reject(new Error('broken'));
    await expect(withDeadline(clock, 200, work, () => 'late')).rejects.toThrow('broken');
  });

  test('work that is late returns, or throws, the result of its deadline', async () => {
    const clock = manualClock();
    const never = new Promise<never>(() => {});
    await expect(
      runThrough(
        clock,
        withDeadline(clock, 200, never, () => 'late'),
      ),
    ).resolves.toBe('late');
    const refused = withDeadline(clock, 200, never, () => {
      throw new Error('late');
    });
    await expect(runThrough(clock, refused)).rejects.toThrow('late');
  });

  test('work that ends while its deadline is handled wins', async () => {
    const clock = manualClock();
    const work = clock.sleep(300).then(() => 'done');
    const timeIsUp = () => clock.sleep(500).then(() => 'late');
    await expect(runThrough(clock, withDeadline(clock, 200, work, timeIsUp))).resolves.toBe('done');
  });

  test('a deadline in the past lets finished work win', async () => {
    const clock = manualClock();
    await expect(withDeadline(clock, -1, Promise.resolve('done'), () => 'late')).resolves.toBe('done');
  });
});
