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
