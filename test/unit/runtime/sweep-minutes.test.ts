import fc from 'fast-check';
import { expect, test } from 'vitest';
import { minuteOf } from '../../../lambdas/runtime/event-id.ts';
import {
  MINUTE_MS,
  minutesToSweep,
  SWEEP_AGES_MINUTES,
  youngestMinutes,
} from '../../../lambdas/runtime/relay/sweep-minutes.ts';

const NOON = Date.UTC(2026, 10, 21, 12);

test('a pass each minute reads six minutes, one of each age', () => {
  expect(minutesToSweep(NOON, NOON + MINUTE_MS)).toEqual(
    SWEEP_AGES_MINUTES.map((age) => minuteOf(NOON - age * MINUTE_MS)).sort(),
  );
});

test('whatever the passes, a minute is read by exactly those in which it passed an age', () => {
  const gaps = fc.array(fc.integer({ min: 1, max: 90 * 60_000 }), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(gaps, fc.integer({ min: 0, max: 2_000 }), (passes, back) => {
      const minute = NOON - back * MINUTE_MS;
      const crossings = SWEEP_AGES_MINUTES.map((age) => minute + MINUTE_MS + age * MINUTE_MS);
      let since = NOON;
      for (const gap of passes) {
        const to = since + gap;
        const expected = crossings.some((at) => at > since && at <= to);
        expect(minutesToSweep(since, to).includes(minuteOf(minute))).toBe(expected);
        since = to;
      }
    }),
    { numRuns: 200 },
  );
});

test('two passes that follow each other read what one would have read, and nothing is read before its age', () => {
  const time = fc.integer({ min: NOON, max: NOON + 86_400_000 });
  fc.assert(
    fc.property(time, time, time, (...times) => {
      const [a, b, c] = times.toSorted((x, y) => x - y) as [number, number, number];
      const whole = new Set(minutesToSweep(a, c));
      expect(new Set([...minutesToSweep(a, b), ...minutesToSweep(b, c)])).toEqual(whole);
      const youngest = [...whole].sort().at(-1);
      if (youngest !== undefined) expect(youngest <= minuteOf(c - 2 * MINUTE_MS)).toBe(true);
    }),
    { numRuns: 50 },
  );
});

test('no time passed, no minute; a clock that went back, no minute', () => {
  expect(minutesToSweep(NOON, NOON)).toEqual([]);
  expect(minutesToSweep(NOON, NOON - 5 * MINUTE_MS)).toEqual([]);
});

test('the youngest minutes reach back to where the first age begins', () => {
  expect(youngestMinutes(NOON + 30_000)).toEqual([
    minuteOf(NOON - 2 * MINUTE_MS),
    minuteOf(NOON - MINUTE_MS),
    minuteOf(NOON),
  ]);
});
