import { expect, test } from 'vitest';
import { createBusBreaker } from '../../../../lambdas/runtime/relay/bus-breaker.ts';

const call = (took: string[], failed: string[]) => ({ took: new Set(took), failed: new Set(failed) });

test('a source is left alone after three calls in a row that failed for it, and only that source', () => {
  const breaker = createBusBreaker();
  for (let n = 0; n < 2; n += 1) breaker.record(call([], ['orders']));
  expect(breaker.isOpen('orders')).toBe(false);
  breaker.record(call(['payments'], ['orders']));
  expect(breaker.isOpen('orders')).toBe(true);
  expect(breaker.isOpen('payments')).toBe(false);
});

test('entries of a source that the bus accepts count, even if it refuses others', () => {
  const breaker = createBusBreaker();
  for (let n = 0; n < 9; n += 1) breaker.record(call(n % 3 === 0 ? ['orders'] : [], ['orders']));
  expect(breaker.isOpen('orders')).toBe(false);
});

test('publishing stops after ten calls in a row without an accepted entry', () => {
  const breaker = createBusBreaker();
  for (let n = 0; n < 9; n += 1) breaker.record(call([], [`service-${n}`]));
  breaker.record(call(['orders'], []));
  for (let n = 0; n < 9; n += 1) breaker.record(call([], [`service-${n}`]));
  expect(breaker.isStopped()).toBe(false);
  breaker.record(call([], []));
  expect(breaker.isStopped()).toBe(false);
  breaker.record(call([], ['service-9']));
  expect(breaker.isStopped()).toBe(true);
  expect(breaker.isOpen('orders')).toBe(true);
});
