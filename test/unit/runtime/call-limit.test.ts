import { expect, test } from 'vitest';
import { callLimit } from '../../../lambdas/runtime/call-limit.ts';

/** Calls that end when they are told to. */
function calls(count: number) {
  const begun: number[] = [];
  const ends: ((fails?: boolean) => void)[] = [];
  const make = Array.from({ length: count }, (_, n) => () => {
    begun.push(n);
    return new Promise<number>((resolve, reject) => {
      ends[n] = (fails) => (fails ? reject(new Error(`call ${n}`)) : resolve(n));
    });
  });
  return { begun, make, end: (n: number, fails = false) => ends[n]?.(fails) };
}

test('at most so many calls are under way, and the others begin in the order in which they came', async () => {
  const limited = callLimit(2);
  const { begun, make, end } = calls(4);
  const results = make.map((call) => limited(call));
  expect(begun).toEqual([0, 1]);
  end(1);
  await expect(results[1]).resolves.toBe(1);
  expect(begun).toEqual([0, 1, 2]);
  end(0);
  end(2);
  await expect(Promise.all([results[0], results[2]])).resolves.toEqual([0, 2]);
  expect(begun).toEqual([0, 1, 2, 3]);
  end(3);
  await expect(results[3]).resolves.toBe(3);
});

test('a call that fails, or throws at once, gives its place back', async () => {
  const limited = callLimit(1);
  const { begun, make, end } = calls(2);
  const [first, second] = make.map((call) => limited(call));
  end(0, true);
  await expect(first).rejects.toThrow('call 0');
  expect(begun).toEqual([0, 1]);
  end(1);
  await expect(second).resolves.toBe(1);
  const thrown = limited(() => {
    throw new Error('at once');
  });
  await expect(thrown).rejects.toThrow('at once');
  await expect(limited(async () => 'free')).resolves.toBe('free');
});

test('a call that comes when a place has just been handed over does not take it', async () => {
  const limited = callLimit(1);
  const { begun, make, end } = calls(3);
  const [first, second] = make.slice(0, 2).map((call) => limited(call));
  end(0);
  await first;
  const third = make[2] && limited(make[2]);
  expect(begun).toEqual([0, 1]);
  end(1);
  await second;
  expect(begun).toEqual([0, 1, 2]);
  end(2);
  await expect(third).resolves.toBe(2);
});
