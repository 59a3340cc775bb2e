import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MINUTE_MS } from '../../lambdas/runtime/base/units.ts';
import { minutesToSweep, SWEEP_AGES_MINUTES } from '../../lambdas/runtime/relay/minutes-to-sweep.ts';
import { minuteOf } from '../../lambdas/runtime/store/event-id.ts';
import { runs } from './support/runs.ts';

const NOON = Date.UTC(2026, 10, 21, 12);

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
    runs(200),
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
    runs(50),
  );
});
