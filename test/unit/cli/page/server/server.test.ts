import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createIdleWatch } from '../../../../../cli/page/server/server.ts';
import { MINUTE_MS } from '../../../../../lambdas/runtime/base/units.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function watched(isBusy = () => false) {
  const onIdle = vi.fn();
  return { onIdle, watch: createIdleWatch(30 * MINUTE_MS, { onIdle, isBusy }) };
}

test('an unused server is idle after 30 minutes', () => {
  const { onIdle } = watched();
  vi.advanceTimersByTime(30 * MINUTE_MS - 1);
  expect(onIdle).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(onIdle).toHaveBeenCalledTimes(1);
});

test('a request begins the time again', () => {
  const { onIdle, watch } = watched();
  vi.advanceTimersByTime(29 * MINUTE_MS);
  watch.seen();
  vi.advanceTimersByTime(29 * MINUTE_MS);
  expect(onIdle).not.toHaveBeenCalled();
  vi.advanceTimersByTime(MINUTE_MS);
  expect(onIdle).toHaveBeenCalledTimes(1);
});

test('while a tab shows the page it is not idle; the time begins when the last one is closed', () => {
  const { onIdle, watch } = watched();
  const [first, second] = [watch.begin(), watch.begin()];
  watch.seen();
  vi.advanceTimersByTime(300 * MINUTE_MS);
  first();
  first();
  vi.advanceTimersByTime(300 * MINUTE_MS);
  expect(onIdle).not.toHaveBeenCalled();
  second();
  vi.advanceTimersByTime(30 * MINUTE_MS);
  expect(onIdle).toHaveBeenCalledTimes(1);
});

test('it is not idle while a change is made', () => {
  let busy = true;
  const { onIdle } = watched(() => busy);
  vi.advanceTimersByTime(90 * MINUTE_MS);
  expect(onIdle).not.toHaveBeenCalled();
  busy = false;
  vi.advanceTimersByTime(30 * MINUTE_MS);
  expect(onIdle).toHaveBeenCalledTimes(1);
});

test('after its end it reports nothing', () => {
  const { onIdle, watch } = watched();
  const end = watch.begin();
  watch.stop();
  end();
  vi.advanceTimersByTime(90 * MINUTE_MS);
  expect(onIdle).not.toHaveBeenCalled();
});
