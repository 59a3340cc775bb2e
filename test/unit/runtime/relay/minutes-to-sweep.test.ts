import { expect, test } from 'vitest';
import { MINUTE_MS } from '../../../../lambdas/runtime/base/units.ts';
import { minutesToSweep, youngestMinutes } from '../../../../lambdas/runtime/relay/minutes-to-sweep.ts';
import { minuteOf } from '../../../../lambdas/runtime/store/event-id.ts';

const NOON = Date.UTC(2026, 10, 21, 12);

test('a pass each minute reads six minutes, aged 1, 4, 16, 64, 256 and 1024 minutes', () => {
  expect(minutesToSweep(NOON, NOON + MINUTE_MS)).toEqual([
    '2026-11-20T18:56',
    '2026-11-21T07:44',
    '2026-11-21T10:56',
    '2026-11-21T11:44',
    '2026-11-21T11:56',
    '2026-11-21T11:59',
  ]);
});

test('a crossing at the very end of a pass belongs to that pass, not to the next one', () => {
  expect(minutesToSweep(NOON - 1, NOON)).toHaveLength(6);
  expect(minutesToSweep(NOON, NOON + 1)).toEqual([]);
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
